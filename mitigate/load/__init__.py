"""Reading resources and other files. What is read of triples, sentences and statements is a `Loaded`, `Streamed` or
`LoadedStatements`, which also says what was odd about them."""
