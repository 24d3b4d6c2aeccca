//! The bundle of the machine's administrator, which no user can change.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_modules::bundle::{BundleError, LoadedBundle, load};
use amplifier_process::files::changeable_part;

/// The managed bundle of a machine, for all its users.
pub const MANAGED_BUNDLE: &str = "/etc/amplifier/bundle.yaml";

/// Loads the managed bundle, if there is one; none on Windows.
///
/// # Errors
/// If the bundle is invalid or unreadable, or another user than the administrator can change one of its files. No session may start then.
pub(crate) fn load_managed(file: &Path) -> Result<Option<LoadedBundle>, BundleError> {
    // There, any user may create the folder.
    if cfg!(windows) {
        return Ok(None);
    }
    match file.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| unusable(file, format!("the file cannot be read: {error}")))?,
    };
    // Its content is not read before that.
    check_owner(file, file)?;
    let bundle = load(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let files = bundle.named_files(folder, folder).map_err(|error| unusable(file, error.to_string()))?;
    files.iter().try_for_each(|named| check_owner(file, named))?;
    Ok(Some(bundle))
}

fn check_owner(bundle: &Path, file: &Path) -> Result<(), BundleError> {
    let changeable = changeable_part(file)
        .map_err(|error| unusable(bundle, format!("the owner of `{}` is unknown: {error}", file.display())))?;
    changeable.map_or(Ok(()), |path: PathBuf| {
        let path = path.display();
        Err(unusable(
            bundle,
            format!(
                "`{path}` can be changed by another user than the administrator; run `chown root {path}` and `chmod go-w {path}`"
            ),
        ))
    })
}

fn unusable(bundle: &Path, why: String) -> BundleError {
    BundleError::whole(bundle, format!("the managed bundle cannot be used, so no session starts: {why}"))
}
