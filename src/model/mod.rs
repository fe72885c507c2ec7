//! A model: configuration, weights and tokenizer, with their digests.
