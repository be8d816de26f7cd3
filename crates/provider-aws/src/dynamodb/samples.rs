//! Records for tests: the bare one, and records of every shape.
