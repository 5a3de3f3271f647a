"""Spark SQL expressions that are evaluated over Arrow exactly as Spark would, and the refusal of all others.

Owns the parser, Spark's typing and the evaluation. Knows neither tables nor files: who asks says what the columns are.
Called by formats, which refuse a table by its expressions, by writing, which evaluates them, and by reading, for its
conditions.
"""
