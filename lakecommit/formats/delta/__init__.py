"""The Delta format: commits versions of Delta tables, reads them, and keeps their log short.

Owns Delta's words: its log, protocol, schemas and properties. Knows neither epochs nor leases. Called by the registry
of formats alone; everybody else asks by the verbs of `formats/base.py`.
"""
