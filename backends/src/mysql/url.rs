//! The URL of a MySQL server, and what is said of it when it does not work.
//! No message ever holds the URL itself, since it holds the password.

use std::str::FromStr as _;

use retryjob_core::{Error, ErrorKind, Result};
use sqlx::mysql::MySqlConnectOptions;

const SHAPE: &str = "mysql://user:password@host:3306/database";

/// Reads a URL, with nothing of the session left to the driver.
pub(super) fn options(url: &str) -> Result<MySqlConnectOptions> {
    let wrong = |message: String| Error::new(ErrorKind::Url, message);
    match url.split_once("://") {
        Some(("mysql" | "mariadb", _)) => {}
        Some((scheme, _)) if is_scheme(scheme) => {
            return Err(wrong(format!(
                "a `{scheme}` URL for a MySQL backend; it would be {SHAPE}{}",
                crate::hint(scheme)
            )));
        }
        _ if url.starts_with("sqlite:") => {
            return Err(wrong(format!(
                "a `sqlite` URL for a MySQL backend; it would be {SHAPE}{}",
                crate::hint("sqlite")
            )));
        }
        _ => return Err(wrong(format!("not a URL; it would be {SHAPE}"))),
    }
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let path = rest
        .split_once(['/', '?', '#'])
        .map_or("", |(_, path)| path);
    if path.contains('@') && !path.contains('?') {
        return Err(wrong(format!(
            "user and password of the URL hold a character that ends them; \
             write `/` as %2F, `?` as %3F, `#` as %23 and `@` as %40: {SHAPE}"
        )));
    }
    let options = MySqlConnectOptions::from_str(url)
        // What the driver says may quote a part of the URL.
        .map_err(|_| wrong(format!("a URL that can't be read; it would be {SHAPE}")))?;
    if options.get_database().is_none_or(str::is_empty) {
        return Err(wrong(format!(
            "the URL names no database; add one after the host: {SHAPE}"
        )));
    }
    Ok(options
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .timezone(None::<String>)
        // In this order: a character set implies that it is sent.
        .charset("utf8mb4")
        .set_names(false))
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Where the server is, for a message.
pub(super) fn place(options: &MySqlConnectOptions) -> String {
    match options.get_socket() {
        Some(path) => path.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}
