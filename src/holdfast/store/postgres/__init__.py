"""A store on PostgreSQL with pgvector: for many processes, tenants and machines."""
