//! Deliveries over TCP: what is answered, and what becomes of jobs.
