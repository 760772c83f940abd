"""Who may use which GPU, and who may measure on this host, across processes."""
