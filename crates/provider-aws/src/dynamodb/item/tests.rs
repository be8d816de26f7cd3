//! The mapping, without a service.
