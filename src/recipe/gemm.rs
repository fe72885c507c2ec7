//! Matrix products as walks along K.
