//! x

#[cfg_attr(not(test), expect(dead_code, reason = "the commands come next"))]
mod folder;

fn main() {}
