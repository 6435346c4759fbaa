"""Tools for users and developers: checks, reports, the doctor, stubs, the coverage page, and the list of installed parts."""
