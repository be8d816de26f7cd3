//! Which files are one shapefile: the same stem, and each one known suffix.
//!
//! A file's name is its stem and its suffix, split at the last dot: `roads.2024.shp` is the `.shp` of the stem
//! `roads.2024`, and no member of `roads`. Suffixes are known in any case (`.SHP`, `.dbF`). `roads.shp.xml`, `roads.zip`
//! and `.shp` are no members of anything.
//!
//! | suffix | member |
//! |---|---|
//! | `.shp` | makes it a bundle |
//! | `.shx` `.dbf` | required of a whole shapefile, see [`Bundle::missing`] |
//! | `.prj` `.cpg` | optional |
//! | `.sbn` `.sbx` `.qix` `.fix` | optional, and an index: derived from the others |
//!
//! **Names that differ only in case.** Stems are compared exactly, since `Roads.shp` and `roads.shp` may lie side by side.
//! But whether `ROADS.DBF` beside `Roads.shp` belongs to it depends on the file system that they come from, and which of
//! `roads.dbf` and `roads.DBF` a program opens depends on the program. So a bundle is refused, and both names are told,
//! if its folder holds a second member whose name, or whose stem, is equal to one of its own but for case.

use std::collections::BTreeMap;

use crate::identity::canonical_uri::lower;

/// The suffixes of a shapefile's files, in lower case and in the order in which they are hashed.
pub const SUFFIXES: [&str; 9] = [
    ".cpg", ".dbf", ".fix", ".prj", ".qix", ".sbn", ".sbx", ".shp", ".shx",
];

const SHAPES: &str = ".shp";
/// Those without which no reader opens it, besides the shapes themselves.
const REQUIRED: [&str; 2] = [".shx", ".dbf"];
const INDEXES: [&str; 4] = [".fix", ".qix", ".sbn", ".sbx"];

/// Stem and suffix of the path of a bundle's file; the suffix is the one of [`SUFFIXES`]. `None` if the path is no
/// member's. Folders are told apart from names by `/`, and stay in the stem.
#[must_use]
pub fn split(path: &str) -> Option<(&str, &'static str)> {
    let (stem, ending) = path.split_at(path.rfind('.')?);
    let named = !stem.is_empty() && !stem.ends_with('/');
    let suffix = SUFFIXES
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(ending))?;
    named.then_some((stem, suffix))
}

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    path: String,
    suffix: &'static str,
}

impl Member {
    /// The member at this path; `None` if it is no member's.
    #[must_use]
    pub fn at(path: impl Into<String>) -> Option<Self> {
        let path = path.into();
        let (_, suffix) = split(&path)?;
        Some(Self { path, suffix })
    }

    /// The path as it was listed.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file's name: the path's last segment.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The name without its suffix.
    #[must_use]
    pub fn stem(&self) -> &str {
        let name = self.name();
        &name[..name.len() - self.suffix.len()]
    }

    /// The suffix in lower case, with its dot.
    #[must_use]
    pub const fn suffix(&self) -> &'static str {
        self.suffix
    }

    /// Whether it is the `.shp`.
    #[must_use]
    pub fn is_shapes(&self) -> bool {
        self.suffix == SHAPES
    }

    /// Whether it is derived from the others, and can be made anew: `.sbn .sbx .qix .fix`.
    #[must_use]
    pub fn is_index(&self) -> bool {
        INDEXES.contains(&self.suffix)
    }

    fn folder(&self) -> &str {
        &self.path[..self.path.len() - self.name().len()]
    }
}

/// The files of one shapefile, in the order of [`SUFFIXES`], at most one of each, and one `.shp`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bundle {
    members: Vec<Member>,
}

/// Why files are no bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Two files, whose names or stems differ at most in case, would be members of one bundle.
    #[error(
        "{first:?} and {second:?} differ at most in case, so which of them belongs to the shapefile is anybody's guess: \
         rename or remove one"
    )]
    CaseClash {
        /// The path of the one.
        first: String,
        /// The path of the other.
        second: String,
    },
}

impl Bundle {
    /// The bundle of the `.shp` at this path, with what `listing` (paths in any order) holds of it. `None` if the path is
    /// no `.shp`'s or not in the listing.
    ///
    /// # Errors
    ///
    /// [`BundleError::CaseClash`].
    pub fn find<'a>(
        path: &str,
        listing: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Self>, BundleError> {
        let Some(shapes) = Member::at(path).filter(Member::is_shapes) else {
            return Ok(None);
        };
        let of_it = place(&shapes);
        let members: Vec<Member> = listing
            .into_iter()
            .filter_map(Member::at)
            .filter(|member| place(member) == of_it)
            .collect();
        if !members.contains(&shapes) {
            return Ok(None);
        }
        Self::of(members).map(Some)
    }

    /// The bundle of these members, which lie in one place, a `.shp` among them.
    fn of(mut members: Vec<Member>) -> Result<Self, BundleError> {
        members.sort_by(|a, b| (a.suffix, &a.path).cmp(&(b.suffix, &b.path)));
        let clash = members
            .array_windows()
            .find(|[a, b]| a.suffix == b.suffix || a.stem() != b.stem());
        match clash {
            Some([first, second]) => Err(BundleError::CaseClash {
                first: first.path.clone(),
                second: second.path.clone(),
            }),
            None => Ok(Self { members }),
        }
    }

    /// The path of the `.shp`, which is what the bundle is called by.
    #[must_use]
    pub fn path(&self) -> &str {
        self.members
            .iter()
            .find(|member| member.is_shapes())
            .map_or("", Member::path)
    }

    /// The members in order, the index sidecars among them or not.
    pub fn members(&self, index_sidecars: bool) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(move |member| index_sidecars || !member.is_index())
    }

    /// The suffixes that a whole shapefile has and this one lacks; of `.shx` and `.dbf`.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> {
        REQUIRED
            .into_iter()
            .filter(|suffix| self.members.iter().all(|member| member.suffix != *suffix))
    }
}

/// The bundles in a listing of paths, each under the path of its `.shp`, in the order of these paths' bytes.
///
/// Left out is what file managers and archivers leave behind: each path with a segment that begins with a dot (`._roads.shp`,
/// `.DS_Store`) or is `__MACOSX`. Folders need not be listed.
///
/// # Errors
///
/// In the place of a bundle, [`BundleError::CaseClash`].
pub fn bundles<'a>(
    listing: impl IntoIterator<Item = &'a str>,
) -> Vec<(String, Result<Bundle, BundleError>)> {
    let mut places: BTreeMap<_, Vec<Member>> = BTreeMap::new();
    for member in listing
        .into_iter()
        .filter(|path| !is_hidden(path))
        .filter_map(Member::at)
    {
        places.entry(place(&member)).or_default().push(member);
    }
    let mut bundles: Vec<_> = places
        .into_values()
        .filter_map(|members| {
            let shapes = members.iter().filter(|member| member.is_shapes());
            let path = shapes.map(Member::path).min()?.to_owned();
            Some((path, Bundle::of(members)))
        })
        .collect();
    bundles.sort_by(|(a, _), (b, _)| a.cmp(b));
    bundles
}

/// What the members of one bundle have in common, and two bundles have not: the folder, and the stem but for case.
fn place(member: &Member) -> (String, String) {
    // With a suffix, as names are hashed: how a final sigma is lowered depends on what follows.
    let name = format!("{}{SHAPES}", member.stem());
    (member.folder().to_owned(), lower(&name).into_owned())
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|segment| {
        segment == "__MACOSX" || (segment.starts_with('.') && !matches!(segment, "." | ".."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bundles' members; of a clash the two paths.
    fn found(listing: &[&str]) -> Vec<Result<Vec<String>, [String; 2]>> {
        bundles(listing.iter().copied())
            .into_iter()
            .map(|(_, bundle)| match bundle {
                Ok(bundle) => Ok(bundle.members(true).map(|m| m.path.clone()).collect()),
                Err(BundleError::CaseClash { first, second }) => Err([first, second]),
            })
            .collect()
    }

    fn whole(paths: &[&str]) -> Result<Vec<String>, [String; 2]> {
        Ok(paths.iter().map(|&path| path.to_owned()).collect())
    }

    fn clash(first: &str, second: &str) -> Result<Vec<String>, [String; 2]> {
        Err([first.to_owned(), second.to_owned()])
    }

    #[test]
    fn members_have_the_stem_and_one_known_suffix() {
        let listing = [
            "roads.shx",
            "roads.prj",
            "roads.shp",
            "roads.shp.xml",
            "roads.2024.dbf",
            "roads.zip",
            "roads",
            "roads.",
            "roads.txt",
            "broads.dbf",
            "roadsdbf",
            ".shp",
            "roads.qix",
        ];
        assert_eq!(
            found(&listing),
            [whole(&["roads.prj", "roads.qix", "roads.shp", "roads.shx"])]
        );
        let bundle = Bundle::find("roads.shp", listing).unwrap().unwrap();
        assert!(bundle.members(false).all(|member| !member.is_index()));
        assert_eq!(bundle.members(false).count(), 3);
        assert_eq!(bundle.missing().collect::<Vec<_>>(), [".dbf"]);
    }

    #[test]
    fn a_dotted_stem_is_split_at_its_last_dot() {
        assert_eq!(
            found(&[
                "TM_WORLD_BORDERS-0.3.shp",
                "TM_WORLD_BORDERS-0.3.dbf",
                "TM_WORLD_BORDERS-0.dbf"
            ]),
            [whole(&[
                "TM_WORLD_BORDERS-0.3.dbf",
                "TM_WORLD_BORDERS-0.3.shp"
            ])]
        );
        let member = Member::at("a.b/roads.2024.SHP").unwrap();
        assert_eq!(
            (
                member.stem(),
                member.suffix(),
                member.name(),
                member.folder()
            ),
            ("roads.2024", ".shp", "roads.2024.SHP", "a.b/")
        );
    }

    #[test]
    fn suffixes_are_known_in_any_case() {
        assert_eq!(
            found(&[
                "ROADS.SHP",
                "ROADS.SHX",
                "ROADS.DBF",
                "a.shp",
                "a.DBF",
                "a.sHx"
            ]),
            [
                whole(&["ROADS.DBF", "ROADS.SHP", "ROADS.SHX"]),
                whole(&["a.DBF", "a.shp", "a.sHx"])
            ]
        );
    }

    #[test]
    fn names_that_differ_in_case_only_are_told_and_not_merged() {
        assert_eq!(
            found(&["Roads.shp", "roads.shp", "other.shp"]),
            [clash("Roads.shp", "roads.shp"), whole(&["other.shp"])]
        );
        assert_eq!(found(&["a.shp", "a.SHP"]), [clash("a.SHP", "a.shp")]);
        assert_eq!(found(&["a.shp", "a.shp"]), [clash("a.shp", "a.shp")]);
        assert_eq!(
            found(&["roads.shp", "ROADS.DBF"]),
            [clash("ROADS.DBF", "roads.shp")]
        );
        assert_eq!(
            found(&["Ä.shp", "ä.prj", "x.dbf", "X.dbf"]),
            [clash("ä.prj", "Ä.shp")]
        );
        // Before a suffix, a capital sigma is lowered to σ.
        assert_eq!(
            found(&["ΑΣ.shp", "ασ.dbf", "ας.dbf"]),
            [clash("ασ.dbf", "ΑΣ.shp")]
        );
        assert!(Bundle::find("roads.shp", ["roads.shp", "Roads.shx"]).is_err());
        let bundle = Bundle::find("roads.shp", ["roads.shp", "Road.shx", "A.shp", "a.shp"]);
        assert_eq!(bundle.unwrap().unwrap().path(), "roads.shp");
    }

    #[test]
    fn folders_part_bundles_and_need_not_be_listed() {
        assert_eq!(
            found(&[
                "b/roads.dbf",
                "a/roads.shp",
                "A/roads.shp",
                "a/roads.dbf",
                "roads.shp",
                "a/x/roads.shp"
            ]),
            [
                whole(&["A/roads.shp"]),
                whole(&["a/roads.dbf", "a/roads.shp"]),
                whole(&["a/x/roads.shp"]),
                whole(&["roads.shp"]),
            ]
        );
    }

    #[test]
    fn what_archivers_leave_behind_is_no_member() {
        assert_eq!(
            found(&[
                "data/roads.shp",
                "__MACOSX/data/._roads.shp",
                "__MACOSX/roads.shp",
                "data/._roads.shp",
                "data/.DS_Store",
                ".git/roads.shp",
                "./x.shp",
                "../y.shp",
            ]),
            [
                whole(&["../y.shp"]),
                whole(&["./x.shp"]),
                whole(&["data/roads.shp"])
            ]
        );
        // Who names a hidden one means it.
        assert!(
            Bundle::find(".roads.shp", [".roads.shp"])
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn without_a_shp_there_is_no_bundle() {
        assert_eq!(
            found(&["roads.dbf", "roads.shx", "ROADS.dbf", "roads.shp.xml"]),
            []
        );
        for path in ["roads.dbf", "roads.shp.xml", "roads", "other.shp"] {
            assert_eq!(
                Bundle::find(path, ["roads.dbf", "roads.shp"]),
                Ok(None),
                "{path}"
            );
        }
    }

    #[test]
    fn only_shx_and_dbf_are_missed() {
        let whole = Bundle::find("a.shp", ["a.shp", "a.SHX", "a.dbf"]);
        assert_eq!(whole.unwrap().unwrap().missing().count(), 0);
    }
}
