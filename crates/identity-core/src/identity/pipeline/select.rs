//! Which objects are jobs: globs over the exact key, with a shapefile's sidecars following their `.shp`.
//!
//! A pattern is matched against the whole key, without bucket, container or account: `*` and `?` stop at `/`, `**/`
//! stands for any number of folders, none included, `{a,b}` for either, `[ab]` for one of them, `\` takes a special
//! character's meaning away. Case counts.
//!
//! A key is selected if `include` matches it and `exclude` does not. To a sidecar (a key that ends in `.shx .dbf .prj
//! .cpg .sbn .sbx .qix .fix`, in any case) both apply also if they match the `.shp` or `.SHP` of the same stem: the files
//! of a bundle are in or out together. `roads.shp.xml` is no sidecar.

use globset::{GlobBuilder, GlobMatcher};
use toml::Table;

use super::{error::ContractError, table::Section};
use crate::identity::bundle::members::split;

/// Which objects are jobs. The default selects all.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// `None`: everything.
    include: Option<Vec<GlobMatcher>>,
    exclude: Vec<GlobMatcher>,
}

impl Selection {
    pub(super) fn from_toml(table: &Table) -> Result<Self, ContractError> {
        let section = Section::new("select", table, &["include", "exclude"])?;
        let globs = |key| {
            let patterns = section.strings(key)?;
            patterns
                .map(|patterns| {
                    patterns
                        .into_iter()
                        .enumerate()
                        .map(|(index, pattern)| {
                            glob(pattern, || format!("{}[{index}]", section.at(key)))
                        })
                        .collect::<Result<Vec<_>, _>>()
                })
                .transpose()
        };
        Ok(Self {
            include: globs("include")?,
            exclude: globs("exclude")?.unwrap_or_default(),
        })
    }

    /// Whether the object with this exact key is a job.
    #[must_use]
    pub fn selects(&self, key: &str) -> bool {
        let excluded = |key: &str| any(&self.exclude, key);
        let shapefiles = shapefiles_of(key);
        let of_bundle = || shapefiles.iter().flatten();
        let included = self.includes(key) || of_bundle().any(|shapefile| self.includes(shapefile));
        // Of `roads.shp` and `roads.SHP` the one in the sidecar's own case is its bundle's.
        let upper = key.ends_with(|last: char| last.is_ascii_uppercase());
        let own = of_bundle().nth(usize::from(upper));
        included && !excluded(key) && !own.is_some_and(|shapefile| excluded(shapefile))
    }

    fn includes(&self, key: &str) -> bool {
        self.include.as_ref().is_none_or(|globs| any(globs, key))
    }
}

/// One by one and not as a `GlobSet`, whose shortcuts take a key that ends in `.` for one without a file name.
fn any(globs: &[GlobMatcher], key: &str) -> bool {
    globs.iter().any(|glob| glob.is_match(key))
}

fn glob(pattern: &str, at: impl Fn() -> String) -> Result<GlobMatcher, ContractError> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|source| ContractError::Glob {
            at: at(),
            pattern: pattern.to_owned(),
            source,
        })
}

/// The keys under which the `.shp` of this sidecar may stand; `None` if the key is no sidecar's.
fn shapefiles_of(key: &str) -> Option<[String; 2]> {
    let (stem, suffix) = split(key)?;
    (suffix != ".shp").then(|| [format!("{stem}.shp"), format!("{stem}.SHP")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(toml: &str) -> Selection {
        Selection::from_toml(&toml.parse().unwrap()).unwrap()
    }

    #[test]
    fn everything_is_selected_by_default() {
        for key in ["a", "a/b.dbf", "", "a\nb"] {
            assert!(Selection::default().selects(key), "{key}");
        }
        assert!(!selection("include = []").selects("a"));
    }

    #[test]
    fn a_star_stops_at_a_slash_and_two_do_not() {
        let select = selection(r#"include = ["**/*.tif", "top/*.csv"]"#);
        for key in [
            "a.tif",
            "x/a.tif",
            "x/y/a.tif",
            "/a.tif",
            "x//a.tif",
            "top/a.csv",
        ] {
            assert!(select.selects(key), "{key}");
        }
        for key in ["a.TIF", "a.tif/b", "top/x/a.csv", "a.tiff", "top.csv"] {
            assert!(!select.selects(key), "{key}");
        }
    }

    #[test]
    fn the_key_is_matched_as_it_is() {
        assert!(selection(r#"include = ["**/data."]"#).selects("x/data."));
        assert!(selection(r#"include = ["a\\*"]"#).selects("a*"));
        assert!(!selection(r#"include = ["a\\*"]"#).selects("ab"));
        assert!(selection(r#"include = ["../x"]"#).selects("../x"));
        assert!(selection(r#"include = ["*"]"#).selects("a\nb"));
    }

    #[test]
    fn a_sidecar_is_selected_with_its_shapefile() {
        let select = selection(r#"include = ["in/*.shp"]"#);
        for ending in [
            "shx", "dbf", "prj", "cpg", "sbn", "sbx", "qix", "fix", "DBF", "Shx",
        ] {
            assert!(
                select.selects(&format!("in/roads.2024.{ending}")),
                "{ending}"
            );
        }
        for key in [
            "in/roads.shp.xml",
            "out/roads.dbf",
            "in/roads.txt",
            "in/.dbf",
            "in/dbf",
        ] {
            assert!(!select.selects(key), "{key}");
        }
        assert!(selection(r#"include = ["*.SHP"]"#).selects("ROADS.DBF"));
    }

    #[test]
    fn a_sidecar_is_excluded_with_its_shapefile() {
        let select = selection("exclude = ['tmp/*.shp', '**/*.fix']");
        assert!(!select.selects("tmp/roads.shp"));
        assert!(!select.selects("tmp/roads.dbf"));
        assert!(!select.selects("in/roads.fix"));
        assert!(select.selects("in/roads.dbf"));
        assert!(select.selects("tmp/roads.tif"));
        let select = selection("include = ['**/*.shp']\nexclude = ['**/*.SHP']");
        assert!(select.selects("in/roads.shp") && select.selects("in/roads.dbf"));
        assert!(!select.selects("in/ROADS.SHP") && !select.selects("in/ROADS.DBF"));
    }

    #[test]
    fn exclude_wins_over_include() {
        let select = selection("include = ['**/*.shp']\nexclude = ['old/**']");
        assert!(select.selects("new/a.dbf"));
        assert!(!select.selects("old/a.shp"));
        assert!(!select.selects("old/a.dbf"));
    }

    #[test]
    fn a_pattern_that_is_no_glob_is_named() {
        let error = Selection::from_toml(&"exclude = ['ok', 'a[']".parse().unwrap()).unwrap_err();
        assert!(matches!(
            error,
            ContractError::Glob { at, pattern, .. } if at == "select.exclude[1]" && pattern == "a["
        ));
    }
}
