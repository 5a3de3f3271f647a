"""What readers ask of a Delta table: its versions, their files, and what each version changed."""
