//! Which objects are jobs: globs over the exact key, with a shapefile's sidecars following their `.shp`.
//!
//! A pattern is matched against the whole key, without bucket, container or account: `*` and `?` stop at `/`, `**/`
//! stands for any number of folders, none included, `{a,b}` for either, `[ab]` for one of them, `\` takes a special
//! character's meaning away. Case counts. What would mean something else than it looks like is refused (`pattern`).
//!
//! A key is selected if `include` matches it and `exclude` does not. To a sidecar (a key that ends in `.shx .dbf .prj
//! .cpg .sbn .sbx .qix .fix`, in any case) both apply also if they match the `.shp` or `.SHP` of the same stem: the files
//! of a bundle are in or out together. `roads.shp.xml` is no sidecar.
//!
//! An object of 0 bytes whose key ends in `/` or in `_$folder$` is what consoles and Hadoop make to show an empty folder.
//! It is no job, unless `folders = true`. Sources: Amazon S3 User Guide, "Organizing objects in the Amazon S3 console by
//! using folders"; Cloud Storage documentation, "Folders" (simulated folders); Apache Hadoop, `S3AFileSystem` and its
//! `FOLDER_SUFFIX` (NativeS3).

mod pattern;

use std::borrow::Cow;

use toml::Table;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use self::pattern::{NoPattern, Pattern};
use super::{error::ContractError, table::Section};
use crate::identity::bundle::members::split;

/// Which objects are jobs. The default selects all but the objects that stand for folders.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    patterns: Patterns,
    /// The same in Unicode's composed form, if any of them could differ from a key in nothing else.
    composed: Option<Patterns>,
    folders: bool,
}

#[derive(Debug, Clone, Default)]
struct Patterns {
    /// `None`: everything.
    include: Option<Vec<Pattern>>,
    exclude: Vec<Pattern>,
}

/// Whether an object is a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// It is.
    Yes,
    /// Its key is not wanted.
    No,
    /// It only stands for a folder.
    Folder,
    /// It only stands for a folder if it is empty, and its size is not known.
    FolderIfEmpty,
}

impl Selection {
    pub(super) fn from_toml(table: &Table) -> Result<Self, ContractError> {
        let section = Section::new("select", table, &["include", "exclude", "folders"])?;
        let include = section.strings("include")?;
        let exclude = section.strings("exclude")?.unwrap_or_default();
        let read = |form: &dyn Fn(&str) -> String| {
            let read = |key: &str, patterns: &[&str]| {
                let at = section.at(key);
                patterns
                    .iter()
                    .enumerate()
                    .map(|(index, text)| pattern(&form(text), || format!("{at}[{index}]")))
                    .collect::<Result<Vec<_>, _>>()
            };
            Ok::<_, ContractError>(Patterns {
                include: include
                    .as_deref()
                    .map(|patterns| read("include", patterns))
                    .transpose()?,
                exclude: read("exclude", &exclude)?,
            })
        };
        let patterns = read(&str::to_owned)?;
        let all_ascii = include
            .iter()
            .flatten()
            .chain(&exclude)
            .all(|text| text.is_ascii());
        Ok(Self {
            patterns,
            composed: (!all_ascii)
                .then(|| read(&|text| text.nfc().collect()))
                .transpose()?,
            folders: section.boolean("folders")?.unwrap_or(false),
        })
    }

    /// Whether an object with this exact key is a job, if it is no folder's.
    #[must_use]
    pub fn selects(&self, key: &str) -> bool {
        self.patterns.selects(key)
    }

    /// Whether the object with this exact key, and of that many bytes, is a job.
    #[must_use]
    pub fn judge(&self, key: &str, size: Option<u64>) -> Selected {
        if !self.selects(key) {
            return Selected::No;
        }
        match size {
            _ if self.folders || !names_folder(key) => Selected::Yes,
            None => Selected::FolderIfEmpty,
            Some(0) => Selected::Folder,
            Some(_) => Selected::Yes,
        }
    }

    /// Whether nothing but Unicode's normal forms decides about this key: a pattern and the key look the same, and are
    /// not (`é` may be one character or two).
    #[must_use]
    pub fn hangs_on_normal_form(&self, key: &str) -> bool {
        let Some(composed) = &self.composed else {
            return false;
        };
        let form = if is_nfc(key) {
            Cow::Borrowed(key)
        } else {
            Cow::Owned(key.nfc().collect())
        };
        composed.selects(&form) != self.selects(key)
    }
}

impl Patterns {
    fn selects(&self, key: &str) -> bool {
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

fn any(patterns: &[Pattern], key: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(key))
}

fn pattern(text: &str, at: impl Fn() -> String) -> Result<Pattern, ContractError> {
    Pattern::parse(text).map_err(|why| {
        let (at, pattern) = (at(), text.to_owned());
        match why {
            NoPattern::Glob(source) => ContractError::Glob {
                at,
                pattern,
                source,
            },
            NoPattern::Misleading(why) => ContractError::MisleadingPattern { at, pattern, why },
            NoPattern::Regex(source) => ContractError::Unmatchable {
                at,
                pattern,
                source,
            },
        }
    })
}

/// Whether consoles or Hadoop give an empty folder a key like this.
fn names_folder(key: &str) -> bool {
    key.ends_with('/') || key.ends_with("_$folder$")
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

    #[test]
    fn a_pattern_that_misleads_is_named() {
        let error =
            Selection::from_toml(&"include = ['ok', 'in/**.shp']".parse().unwrap()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("select.include[1]: \"in/**.shp\": `**`"),
            "{text}"
        );
    }

    #[test]
    fn what_stands_for_a_folder_is_no_job_unless_it_is_wanted() {
        let (default, wanted) = (Selection::default(), selection("folders = true"));
        for key in ["in/", "in/sub/", "/", "in/sub_$folder$"] {
            assert_eq!(default.judge(key, Some(0)), Selected::Folder, "{key}");
            assert_eq!(default.judge(key, None), Selected::FolderIfEmpty, "{key}");
            assert_eq!(default.judge(key, Some(1)), Selected::Yes, "{key}");
            assert_eq!(wanted.judge(key, Some(0)), Selected::Yes, "{key}");
            assert_eq!(wanted.judge(key, None), Selected::Yes, "{key}");
        }
        for key in ["in/a.shp", "in/_SUCCESS", "_$folder$x", ""] {
            assert_eq!(default.judge(key, Some(0)), Selected::Yes, "{key}");
        }
        let excluded = selection("exclude = ['**/']");
        assert_eq!(excluded.judge("in/", Some(5)), Selected::No);
        assert_eq!(excluded.judge("in/a.shp", Some(0)), Selected::Yes);
    }

    #[test]
    fn what_only_a_normal_form_decides_is_told() {
        let (composed, parted) = ("\u{e9}", "e\u{301}");
        for (pattern, same, other) in [(composed, composed, parted), (parted, parted, composed)] {
            for list in ["include", "exclude"] {
                let select = selection(&format!("{list} = ['{pattern}t/**']"));
                let key = |name: &str| format!("{name}t/a.shp");
                assert_eq!(select.selects(&key(same)), list == "include");
                assert!(!select.hangs_on_normal_form(&key(same)));
                assert_eq!(select.selects(&key(other)), list == "exclude");
                assert!(select.hangs_on_normal_form(&key(other)));
                assert!(!select.hangs_on_normal_form("et/a.shp"));
            }
        }
        assert!(!selection("include = ['a/*']").hangs_on_normal_form(&format!("{parted}/x")));
    }
}
