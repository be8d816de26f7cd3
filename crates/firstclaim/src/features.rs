//! What a build may be without, and how that is said.

use crate::failure::Failure;

/// A part of the program that a feature may have to bring.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Feature<T> {
    /// It is there.
    Built(T),
    /// It is not: this feature brings it.
    #[cfg_attr(
        all(feature = "aws", feature = "postgres"),
        expect(dead_code, reason = "this build has them all")
    )]
    LeftOut(&'static str),
}

impl<T: Copy> Feature<T> {
    /// The part, or what to build to have it. `product` is its name, for people.
    pub(crate) fn built(self, product: &str) -> Result<T, Failure> {
        match self {
            Self::Built(part) => Ok(part),
            Self::LeftOut(feature) => Err(Failure::usage(format!(
                "this program was built without {product}: build it with `cargo build -p firstclaim --features {feature}`"
            ))),
        }
    }
}

/// A part of a module that is there with this feature alone.
macro_rules! built_with {
    ($feature:literal, $part:path) => {{
        #[cfg(feature = $feature)]
        let part = $crate::features::Feature::Built($part as _);
        #[cfg(not(feature = $feature))]
        let part = $crate::features::Feature::LeftOut($feature);
        part
    }};
}
