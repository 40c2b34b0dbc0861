"""Reading resources and other files: a loader returns a `Loaded` or a `Streamed`, or raises MitigateError."""
