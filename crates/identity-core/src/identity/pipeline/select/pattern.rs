//! One pattern of `[select]`: what it means, and which cannot mean what they look like.
//!
//! The dialect is gitignore's where both have a word for it ("PATTERN FORMAT" in gitignore(5)): `*` and `?` stop at `/`,
//! `**` stands for folders only as a whole part of a path, and a `/` at the end is for folders alone. Another tool's
//! pattern that would be read here as something else is refused, and told how it is written.

use globset::GlobBuilder;
use regex_automata::{
    meta::{BuildError, Regex},
    util::syntax,
};

/// A pattern that was read.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
}

/// Why a text is no pattern.
#[derive(Debug)]
pub(super) enum NoPattern {
    /// It is no glob.
    Glob(globset::Error),
    /// It would mean something else than it looks like.
    Misleading(&'static str),
    /// It is longer than can be matched.
    Regex(Box<BuildError>),
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, NoPattern> {
        if let Some(why) = misleading(text) {
            return Err(NoPattern::Misleading(why));
        }
        // Alone, `**/` would be taken for `**`, and so would be more of them.
        let mut rest = text;
        while let Some(shorter) = rest
            .strip_prefix("**/")
            .filter(|rest| rest.starts_with("**/"))
        {
            rest = shorter;
        }
        let text = if rest == "**/" { "{**/}" } else { rest };
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(NoPattern::Glob)?;
        // What may stand for any character is a byte there, and a character here. Nothing else is written as `[^/]`: literal
        // brackets are escaped, and classes have more in them.
        let regex = glob.regex().replace("[^/]", "(?u:[^/])");
        let syntax = syntax::Config::new().utf8(false).dot_matches_new_line(true);
        Regex::builder()
            .syntax(syntax)
            .configure(Regex::config().utf8_empty(false))
            .build(&regex)
            .map(|regex| Self { regex })
            .map_err(|error| NoPattern::Regex(Box::new(error)))
    }

    /// Whether it matches the whole key.
    pub(super) fn matches(&self, key: &str) -> bool {
        self.regex.is_match(key)
    }
}

/// What a pattern's characters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// A character that stands for itself; whether `\` stands before it.
    Literal(char, bool),
    Slash,
    /// That many `*`.
    Stars(usize),
    Any,
    /// `[…]`; whether all of it is ASCII.
    Class(bool),
    Open,
    Comma,
    Close,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut depth = 0_usize;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        tokens.push(match character {
            '\\' => match rest.next() {
                Some(escaped) => Token::Literal(escaped, true),
                None => Token::Literal('\\', false),
            },
            '/' => Token::Slash,
            '?' => Token::Any,
            '*' => {
                let mut count = 1;
                while rest.next_if_eq(&'*').is_some() {
                    count += 1;
                }
                Token::Stars(count)
            }
            '[' => {
                let _ = rest.next_if(|next| matches!(next, '!' | '^'));
                let (mut first, mut ascii) = (true, true);
                // As globset reads it: a `]` that comes first is one of the characters, and so is a `\`.
                while let Some(inner) = rest.next().filter(|&inner| first || inner != ']') {
                    ascii &= inner.is_ascii();
                    first = false;
                }
                Token::Class(ascii)
            }
            '{' => {
                depth += 1;
                Token::Open
            }
            ',' if depth > 0 => Token::Comma,
            '}' if depth > 0 => {
                depth -= 1;
                Token::Close
            }
            other => Token::Literal(other, false),
        });
    }
    tokens
}

/// Why the pattern would mean something else than it looks like.
fn misleading(text: &str) -> Option<&'static str> {
    let tokens = tokens(text);
    if tokens.is_empty() {
        return Some("an empty pattern matches no key");
    }
    beginning(text, &tokens).or_else(|| parts(&tokens))
}

/// What may not stand at a pattern's ends.
fn beginning(text: &str, tokens: &[Token]) -> Option<&'static str> {
    let blank = |token: Option<&Token>| matches!(token, Some(Token::Literal(character, false)) if character.is_whitespace());
    if blank(tokens.first()) || blank(tokens.last()) {
        return Some(
            "a blank at an end is part of the pattern: write `\\` before it if keys have it",
        );
    }
    match tokens {
        [Token::Literal('!', false), ..] => Some(
            "`!` takes nothing back here: what is not wanted stands in exclude; write `\\!` if keys begin with it",
        ),
        [Token::Slash, ..] => Some(
            "a pattern begins where the key does, and a key seldom begins with `/`: leave it out, or write `\\/` if keys \
             begin with it",
        ),
        [Token::Literal('.', false), Token::Slash, ..] => Some(
            "a pattern begins where the key does, and a key seldom begins with `./`: leave it out, or write `\\./` if keys \
             begin with it",
        ),
        _ if text.contains("://") => Some(
            "a pattern is matched against the key alone, without scheme and container: leave them out, or write `:\\//` \
             if keys have it",
        ),
        _ => None,
    }
}

/// What may not stand within a pattern.
fn parts(tokens: &[Token]) -> Option<&'static str> {
    // For each open group, whether a part of a path begins at its beginning, and whether it has had a comma.
    let mut groups: Vec<(bool, bool)> = Vec::new();
    let mut starts = true;
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        let next_ends = |in_group: bool| match next {
            None | Some(Token::Slash) => true,
            Some(Token::Comma | Token::Close) => in_group,
            _ => false,
        };
        match *token {
            Token::Literal(escaped, true) if escaped.is_alphanumeric() => {
                return Some(
                    "`\\` takes the meaning of a special character away, and this one has none: folders are parted by `/`",
                );
            }
            Token::Class(false) => {
                return Some(
                    "a character beyond ASCII cannot stand in `[…]`: write the characters as `{…,…}`",
                );
            }
            Token::Stars(2) => {
                // The whole of an alternative, it would stop at `/`.
                let alone = matches!(
                    at.checked_sub(1).map(|at| tokens[at]),
                    Some(Token::Open | Token::Comma)
                ) && next != Some(&Token::Slash);
                if !starts || !next_ends(true) || alone {
                    return Some(FOLDERS);
                }
            }
            Token::Stars(3..) => return Some(FOLDERS),
            Token::Slash if ends(&tokens[at + 1..], groups.len()) => {
                let folders = at.checked_sub(1).map(|at| tokens[at]) == Some(Token::Stars(2));
                if !folders {
                    return Some(
                        "with a `/` at its end it names the folder's own object, and nothing that lies in the folder: \
                         write `/**` for that",
                    );
                }
            }
            Token::Close if groups.last().is_some_and(|&(_, parted)| !parted) => {
                return Some(
                    "`{…}` without a comma is only what stands in it: leave the braces out",
                );
            }
            _ => {}
        }
        starts = match *token {
            Token::Slash => true,
            Token::Open => {
                groups.push((starts, false));
                starts
            }
            Token::Comma => match groups.last_mut() {
                Some((starts, parted)) => {
                    *parted = true;
                    *starts
                }
                None => false,
            },
            Token::Close => {
                groups.pop();
                false
            }
            _ => false,
        };
    }
    None
}

const FOLDERS: &str = "`**` stands for folders only as a whole part of a path, as in `**/*.shp` and `in/**`: elsewhere it \
                       would be one `*`";

/// Whether the pattern can end before these tokens, within so many groups.
fn ends(rest: &[Token], mut depth: usize) -> bool {
    let mut skipping = 0_usize;
    for token in rest {
        match token {
            Token::Open if skipping > 0 => skipping += 1,
            Token::Close if skipping > 1 => skipping -= 1,
            // The other alternatives of the group that ends here.
            Token::Comma if skipping == 0 && depth > 0 => skipping = 1,
            Token::Close if depth > 0 => {
                skipping = 0;
                depth -= 1;
            }
            _ if skipping > 0 => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, key: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(key)
    }

    #[test]
    fn two_stars_and_a_slash_are_the_folders_own_objects() {
        for pattern in ["**/", "**/**/", "**/**/**/"] {
            for key in ["in/", "in/sub/", "/"] {
                assert!(matches(pattern, key), "{pattern} {key}");
            }
            for key in ["a.shp", "in/a.shp", "in/sub/a.shp", "/lead.shp", "é/x.shp"] {
                assert!(!matches(pattern, key), "{pattern} {key}");
            }
        }
        assert!(matches("in/**/", "in/sub/") && matches("in/**/", "in/"));
        assert!(!matches("in/**/", "in/a") && !matches("in/**/", "out/"));
        assert!(matches("**", "a") && matches("**", "in/"));
        assert!(matches("{**/,*.tmp}", "in/") && matches("{**/,*.tmp}", "a.tmp"));
    }

    /// Each with what git says of it (`git check-ignore`), where git has the like.
    #[test]
    fn patterns_mean_what_they_mean_to_git() {
        for (pattern, key, matched) in [
            ("**/foo", "foo", true),
            ("**/foo", "a/b/foo", true),
            ("**/foo", "afoo", false),
            ("abc/**", "abc/x/y", true),
            ("abc/**", "abcd/x", false),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("a/**/b", "axb", false),
            ("in/*.shp", "in/x/a.shp", false),
            ("a?b", "a/b", false),
            ("a[!x]b", "a/b", false),
            ("a[+-9]b", "a/b", false),
            ("a[!x]b", "ayb", true),
            ("a[]]b", "a]b", true),
            (r"\!a", "!a", true),
            (r"\/a", "/a", true),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("caf?.shp", "café.shp", true),
            ("caf?.shp", "cafés.shp", false),
            ("?", "😀", true),
            ("??", "😀", false),
            ("caf*", "café", true),
            ("[^/]*", "/", false),
            ("[^/]*", "ab", true),
            (r"\[^*", "[^x", true),
        ] {
            assert_eq!(matches(pattern, key), matched, "{pattern} {key}");
        }
    }

    #[test]
    fn an_empty_alternative_is_one() {
        assert!(matches("tmp{,/**}", "tmp") && matches("tmp{,/**}", "tmp/x/y"));
        assert!(!matches("tmp{,/**}", "tmpx"));
    }

    #[test]
    fn what_cannot_mean_what_it_looks_like_is_refused() {
        for (pattern, word) in [
            ("", "empty"),
            (" a", "blank"),
            ("tmp/** ", "blank"),
            ("a\n", "blank"),
            ("!tmp/**", "`!`"),
            ("/in/*.shp", "begins where the key does"),
            ("./in/*.shp", "begins where the key does"),
            ("s3://bucket/in/**", "the key alone"),
            ("**.shp", "`**`"),
            ("in/**.shp", "`**`"),
            ("in**/a", "`**`"),
            ("in/***", "`**`"),
            ("{a,b}**", "`**`"),
            ("in/{**,x}", "`**`"),
            ("in{**/a,b}", "`**`"),
            ("tmp/", "the folder's own object"),
            ("tmp/*/", "the folder's own object"),
            ("{tmp,old}/", "the folder's own object"),
            ("{tmp/,old/x}", "the folder's own object"),
            ("{a,{b/,c}}", "the folder's own object"),
            ("in/{job_id}.shp", "without a comma"),
            ("scene{1..9}.tif", "without a comma"),
            (r"in\roads\*.shp", "`\\`"),
            ("[éà].shp", "beyond ASCII"),
        ] {
            match Pattern::parse(pattern) {
                Err(NoPattern::Misleading(why)) => assert!(why.contains(word), "{pattern}: {why}"),
                other => panic!("{pattern}: {other:?}"),
            }
        }
        for pattern in [
            "../x",
            r"\ a",
            r"a\ ",
            "{a/b,c/}d",
            "in/{**/x,y}",
            "a,b",
            "[**]",
            "[/]",
            "x{a/**,b}",
            "in//x",
        ] {
            assert!(Pattern::parse(pattern).is_ok(), "{pattern}");
        }
    }

    proptest! {
        /// On ASCII keys the matcher is globset's own.
        #[test]
        fn it_is_globsets_own_matcher(pattern in "[ab/*?{},!^\\[\\]\\\\-]{1,9}", key in "[ab/!^*-]{0,7}") {
            if let Ok(ours) = Pattern::parse(&pattern) && !pattern.starts_with("**/") {
                let theirs = GlobBuilder::new(&pattern)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .empty_alternates(true)
                    .build()
                    .unwrap()
                    .compile_matcher();
                prop_assert_eq!(ours.matches(&key), theirs.is_match(&key));
            }
        }

        #[test]
        fn no_text_is_too_odd_to_be_judged(pattern in ".{0,12}") {
            let _ = Pattern::parse(&pattern);
        }
    }
}
