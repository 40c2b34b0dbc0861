"""Words and their forms: relations, targets, prompts, events, frames, sentences."""
