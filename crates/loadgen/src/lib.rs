//! A load generator for servers with OpenAI's interface. It records and computes nothing.
