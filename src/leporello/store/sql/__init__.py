"""The store in SQL, written once for SQLite and PostgreSQL; what differs between them stands behind `Database`."""
