"""Reading resources and other files. Loaders of triples, sentences and statements return a `Loaded`,
`Streamed` or `LoadedStatements`, which also describes oddities of the file."""
