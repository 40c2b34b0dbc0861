"""Reading resources and other files. Loaders return a `Loaded` or a `Streamed`, with notices of oddities. Each raises
MitigateError for a path that is not given, for a file that is missing, unreadable, empty or of another form, and,
unless on_bad_line is "skip", for bad lines, by their numbers."""
