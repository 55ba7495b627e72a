"""The store in SQL, written once for SQLite and PostgreSQL: they differ in `Database`, `IndexTables` and `Care`."""
