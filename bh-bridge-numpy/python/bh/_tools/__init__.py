"""What users and developers run: checks, reports, the doctor, stubs, the coverage page, and what is installed."""
