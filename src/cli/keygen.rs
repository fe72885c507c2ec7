//! `attest keygen`: a key pair.
