"""Reading resources and other files. Loaders of triples, sentences, statements and stories return a `Loaded` or a
`Streamed`, with notices of oddities of the file."""
