//! The cache of kernels: a directory per kernel, named by its id.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use landspeed_sys::home::base_directory;
use landspeed_sys::process::effective_uid;

use super::error::Error;
use super::lock::Lock;
use super::record::{Kernel, STOCK};
use super::version::Version;

/// File in a kept build tree that was compiled to its end.
pub(super) const COMPLETE: &str = "complete";

/// Environment variable with the directory of the cache.
pub const ENVIRONMENT: &str = "LANDSPEED_KERNELS";

/// Minimum number of digits in a prefix of an id, so that `7` is a version.
const MIN_ID_DIGITS: usize = 4;

/// Permission bit of files that everyone can write to.
const EVERYONE_WRITES: u32 = 0o002;

/// Directory for builds; hidden, so that a listing shows kernels only.
const BUILDS: &str = ".build";

/// The cache of kernels. Nothing is created before a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Returns the cache in `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the cache in `asked`, otherwise in `LANDSPEED_KERNELS`, otherwise in `landspeed/kernels` in the user's
    /// cache directory.
    pub fn open(asked: Option<&Path>) -> Result<Self, Error> {
        Self::choose(asked, |name| std::env::var_os(name))
    }

    fn choose(asked: Option<&Path>, environment: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let root = asked
            .map(Path::to_owned)
            .or_else(|| environment(ENVIRONMENT).filter(|value| !value.is_empty()).map(PathBuf::from))
            .or_else(|| Some(base_directory("XDG_CACHE_HOME", ".cache", &environment)?.join("landspeed/kernels")))
            .ok_or(Error::NoHome)?;
        let root = std::path::absolute(&root).map_err(Error::io("find", &root))?;
        Ok(Self { root })
    }

    /// Returns the directory of the cache.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns all kernels, newest release first. Directories without a complete kernel are skipped.
    pub fn list(&self) -> Result<Vec<Kernel>, Error> {
        let mut kernels: Vec<Kernel> = directories(&self.root)?
            .iter()
            .filter_map(|directory| Kernel::load(directory).ok())
            .filter(|kernel| kernel.executable.is_file())
            .collect();
        kernels.sort_by_key(|kernel| Reverse((kernel.version(), kernel.built_at_ns)));
        Ok(kernels)
    }

    /// Returns the kernel to run, named as in [`Cache::find`].
    ///
    /// # Errors
    /// If there is no such kernel, or if another user could have written it: it runs with the rights of this user.
    pub fn find_trusted(&self, wanted: Option<&str>) -> Result<Kernel, Error> {
        let kernel = self.find(wanted)?;
        self.check_trust(&kernel)?;
        Ok(kernel)
    }

    /// Checks that everyone cannot write to cache, kernel and executable, and that root does not run a file of
    /// another user.
    fn check_trust(&self, kernel: &Kernel) -> Result<(), Error> {
        for at in [self.root(), kernel.directory(), &kernel.executable] {
            let facts = std::fs::metadata(at).map_err(Error::io("read", at))?;
            let why = if facts.mode() & EVERYONE_WRITES != 0 {
                format!("is writable by everyone (mode {:04o})", facts.mode() & 0o7777)
            } else if effective_uid() == 0 && facts.uid() != 0 {
                format!("is owned by another user (uid {})", facts.uid())
            } else {
                continue;
            };
            return Err(Error::Untrusted { kernel: kernel.directory().to_owned(), at: at.to_owned(), why });
        }
        Ok(())
    }

    /// Returns the kernel that `wanted` names: by id or prefix of an id, by release (`7.3.4`), by version (`7.3`), of which
    /// the newest is returned, or by `stock`. `None` and `stock` are the newest release. A kernel with patches is found by its
    /// name and by the digest of the patches only.
    pub fn find(&self, wanted: Option<&str>) -> Result<Kernel, Error> {
        let kernels = self.list()?;
        let have = || kernels.iter().map(|k| (k.id.clone(), k.release.clone())).collect();
        let mut stock = kernels.iter().filter(|kernel| kernel.is_stock());
        let Some(text) = wanted.filter(|wanted| *wanted != STOCK) else {
            return stock.next().cloned().ok_or_else(|| Error::NotFound { wanted: None, have: have() });
        };
        let version: Option<Version> = text.parse().ok();
        let within = |kernel: &&Kernel| {
            kernel.version().zip(version.as_ref()).is_some_and(|(kernel, wanted)| kernel.is_within(wanted))
        };
        if let Some(kernel) = (kernels.iter().find(|kernel| kernel.id == text))
            .or_else(|| stock.clone().find(|kernel| kernel.release == text))
            .or_else(|| stock.find(within))
            .or_else(|| kernels.iter().find(|kernel| kernel.name.as_deref() == Some(text)))
        {
            return Ok(kernel.clone());
        }
        let prefix = text.to_ascii_lowercase();
        let is_called = |kernel: &&Kernel| match kernel.patch_digest() {
            Some(digest) => digest.starts_with(&prefix) || prefix.contains('-') && kernel.id.starts_with(&prefix),
            None => kernel.id.starts_with(&prefix),
        };
        let called: Vec<&Kernel> =
            kernels.iter().filter(|_| prefix.len() >= MIN_ID_DIGITS).filter(is_called).collect();
        match called[..] {
            [kernel] => Ok(kernel.clone()),
            [] => Err(Error::NotFound { wanted: Some(text.to_owned()), have: have() }),
            _ => Err(Error::Ambiguous {
                wanted: text.to_owned(),
                have: called.iter().map(|kernel| kernel.id.clone()).collect(),
            }),
        }
    }

    /// Returns kernels to compare, each with the name by which [`Cache::find`] finds it. `stock` is the kernel without the
    /// patches of the others.
    ///
    /// # Errors
    /// If there is no such kernel, or if the others have patches of different kernels.
    pub fn find_each(&self, names: &[String]) -> Result<Vec<(String, Kernel)>, Error> {
        let named = names.iter().filter(|name| *name != STOCK);
        let found = named.map(|name| self.find(Some(name))).collect::<Result<Vec<_>, _>>()?;
        let patched: Vec<&Kernel> = found.iter().filter(|kernel| !kernel.is_stock()).collect();
        let bases: BTreeSet<&str> = patched.iter().map(|kernel| kernel.stock_id()).collect();
        let stock = || match patched.first() {
            None => self.find(None),
            Some(kernel) if bases.len() == 1 => self.exact(kernel.stock_id()).ok_or_else(|| Error::NoStock {
                patched: kernel.display_name().to_owned(),
                stock: kernel.stock_id().to_owned(),
                release: kernel.release.clone(),
            }),
            Some(_) => Err(Error::Ambiguous {
                wanted: STOCK.to_owned(),
                have: bases.iter().map(|id| (*id).to_owned()).collect(),
            }),
        };
        let mut found = found.iter();
        let mut each = Vec::new();
        for name in names {
            let kernel = if name == STOCK { stock()? } else { found.next().expect("one for each name").clone() };
            let is_newest = name != STOCK || self.find(Some(name)).is_ok_and(|newest| newest.id == kernel.id);
            each.push((if is_newest { name.clone() } else { kernel.id.clone() }, kernel));
        }
        Ok(each)
    }

    /// Checks that no kernel other than `id` has a name.
    pub(super) fn check_name(&self, name: Option<&str>, id: &str) -> Result<(), Error> {
        let Some(name) = name else { return Ok(()) };
        match self.list()?.into_iter().find(|kernel| kernel.name.as_deref() == Some(name) && kernel.id != id) {
            Some(other) => Err(Error::NameTaken { name: name.to_owned(), id: other.id }),
            None => Ok(()),
        }
    }

    /// Gives a patched kernel another name.
    pub(super) fn rename(&self, kernel: Kernel, name: Option<String>) -> Result<Kernel, Error> {
        self.check_name(name.as_deref(), &kernel.id)?;
        let kernel = Kernel { name, ..kernel };
        kernel.save(&self.kernel_directory(&kernel.id))?;
        Ok(kernel)
    }

    /// Returns the kernel with exactly this id.
    pub(super) fn exact(&self, id: &str) -> Option<Kernel> {
        Kernel::load(&self.root.join(id)).ok().filter(|kernel| kernel.executable.is_file())
    }

    /// Removes a kernel. It is no longer listed from then on, even if its files cannot all be deleted.
    pub fn remove(&self, kernel: &Kernel) -> Result<(), Error> {
        let directory = self.root.join(&kernel.id);
        let leaving = self.root.join(format!(".leaving.{}.{}", kernel.id, std::process::id()));
        std::fs::rename(&directory, &leaving).map_err(Error::io("remove", &directory))?;
        std::fs::remove_dir_all(&leaving).map_err(Error::io("remove", &leaving))
    }

    /// Returns the directories of interrupted, failed, running and kept builds, and the remains of interrupted removals.
    pub fn unfinished(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = directories(&self.root.join(BUILDS))?;
        let leaving = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(".leaving."));
        found.extend(directories(&self.root)?.into_iter().filter(leaving));
        Ok(found)
    }

    /// Whether a directory of [`Cache::unfinished`] is the tree of a finished build, kept for builds with patches.
    pub fn is_kept_tree(directory: &Path) -> bool {
        directory.join(COMPLETE).exists()
    }

    /// Removes the directories of [`Cache::unfinished`], except those of running builds, which are returned.
    pub fn clear_unfinished(&self) -> Result<Vec<PathBuf>, Error> {
        let mut busy = Vec::new();
        for directory in self.unfinished()? {
            let lock_path = lock_of(&directory);
            let lock = if lock_path.exists() { Lock::try_take(&lock_path)? } else { None };
            if lock.is_none() && lock_path.exists() {
                busy.push(directory);
                continue;
            }
            std::fs::remove_dir_all(&directory).map_err(Error::io("remove", &directory))?;
            if let Some(lock) = lock {
                lock.remove();
            }
        }
        let index = self.index_directory();
        if index.exists()
            && let Some(lock) = Lock::try_take(&lock_of(&index))?
        {
            std::fs::remove_dir_all(&index).map_err(Error::io("remove", &index))?;
            lock.remove();
        }
        // The directory of builds is removed if it is empty.
        let _ = std::fs::remove_dir(self.root.join(BUILDS));
        Ok(busy)
    }

    /// Returns the directory of the package index, which exists while it is needed.
    pub(super) fn index_directory(&self) -> PathBuf {
        self.root.join(".index")
    }

    /// Returns the directory in which the kernel `id` is built.
    pub(super) fn build_directory(&self, id: &str) -> PathBuf {
        self.root.join(BUILDS).join(id)
    }

    /// Returns the directory of the finished kernel `id`.
    pub(super) fn kernel_directory(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }
}

fn directories(root: &Path) -> Result<Vec<PathBuf>, Error> {
    match std::fs::read_dir(root) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("read", root)(error)),
    }
}

/// Returns the lock file of a build directory.
pub(super) fn lock_of(build: &Path) -> PathBuf {
    let mut name = build.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::kernel::record::{AppliedPatch, CONFIG, EXECUTABLE, RECORD, SCHEMA, Source};

    fn keep(cache: &Cache, id: &str, release: &str) {
        keep_named(cache, id, release, None);
    }

    fn keep_named(cache: &Cache, id: &str, release: &str, name: Option<&str>) {
        let directory = cache.kernel_directory(id);
        let kernel = Kernel {
            schema: SCHEMA.to_owned(),
            id: id.to_owned(),
            release: release.to_owned(),
            executable: PathBuf::from("/elsewhere/vmlinux"),
            source: Source::Tarball { path: "linux.tar".into(), hash: "00".to_owned() },
            config_hash: String::new(),
            edits_hash: String::new(),
            edits: Vec::new(),
            name: name.map(str::to_owned),
            patches: id
                .contains('-')
                .then(|| AppliedPatch { file: "x".into(), hash: "00".into() })
                .into_iter()
                .collect(),
            compiler: "gcc".to_owned(),
            built_at_ns: 1,
            build_seconds: 2.0,
            size_bytes: 3,
            executable_hash: String::new(),
            missing_features: Vec::new(),
        };
        std::fs::create_dir_all(&directory).expect("made");
        std::fs::write(directory.join(RECORD), serde_json::to_vec(&kernel).expect("json")).expect("written");
        std::fs::write(directory.join(EXECUTABLE), "elf").expect("written");
        std::fs::write(directory.join(CONFIG), "CONFIG_NET_SCH_FQ=y\n").expect("written");
    }

    fn filled() -> (tempfile::TempDir, Cache) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cache = Cache::at(directory.path());
        keep(&cache, "aaaa111122223333", "7.3.4");
        keep(&cache, "aaaa999922223333", "7.10.1");
        keep(&cache, "bbbb111122223333", "6.16.0");
        (directory, cache)
    }

    #[test]
    fn kernels_are_listed_newest_release_first() {
        let (_guard, cache) = filled();
        let releases: Vec<_> = cache.list().expect("readable").into_iter().map(|kernel| kernel.release).collect();
        assert_eq!(releases, ["7.10.1", "7.3.4", "6.16.0"]);
        assert_eq!(cache.find(None).expect("one").release, "7.10.1");
    }

    #[test]
    fn a_kernel_is_found_by_id_release_and_version() {
        let (_guard, cache) = filled();
        for (wanted, release) in [
            ("bbbb", "6.16.0"),
            ("AAAA1", "7.3.4"),
            ("7.3.4", "7.3.4"),
            ("7.3", "7.3.4"),
            ("7", "7.10.1"),
            ("6", "6.16.0"),
        ] {
            assert_eq!(cache.find(Some(wanted)).expect(wanted).release, release);
        }
        assert!(matches!(cache.find(Some("aaaa")), Err(Error::Ambiguous { .. })));
    }

    #[test]
    fn patched_kernels_are_found_by_name_and_digest_only() {
        let (_guard, cache) = filled();
        keep_named(&cache, "aaaa999922223333-1a2b3c4d", "7.10.1", Some("iw20"));
        keep_named(&cache, "aaaa999922223333-5e6f7a8b", "7.10.1", Some("iw30"));
        keep_named(&cache, "bbbb111122223333-9c9c9c9c", "6.16.0", None);
        let id = |wanted: Option<&str>| cache.find(wanted).expect("found").id;
        for wanted in [None, Some("stock"), Some("7"), Some("7.10.1"), Some("aaaa9"), Some("aaaa999922223333")] {
            assert_eq!(id(wanted), "aaaa999922223333", "{wanted:?}");
        }
        assert_eq!(id(Some("iw20")), "aaaa999922223333-1a2b3c4d");
        for wanted in ["1a2b", "1a2b3c4d", "aaaa999922223333-1", "AAAA999922223333-1a2b3c4d"] {
            assert_eq!(id(Some(wanted)), "aaaa999922223333-1a2b3c4d", "{wanted}");
        }
        let error = cache.check_name(Some("iw20"), "aaaa999922223333-5e6f7a8b").expect_err("taken").to_string();
        assert!(error.contains("aaaa999922223333-1a2b3c4d has this name"), "{error}");
        assert!(cache.check_name(Some("iw20"), "aaaa999922223333-1a2b3c4d").is_ok());
        assert_eq!(cache.find(Some("9c9c")).expect("found").display_name(), "9c9c9c9c");
        cache.remove(&cache.find(Some("6.16")).expect("there")).expect("removed");
        assert!(cache.find(Some("bbbb")).is_err() && cache.find(Some("6.16")).is_err());
    }

    #[test]
    fn stock_is_the_kernel_below_the_patches() {
        let (_guard, cache) = filled();
        keep_named(&cache, "bbbb111122223333-1a2b3c4d", "6.16.0", Some("iw20"));
        keep_named(&cache, "aaaa999922223333-5e6f7a8b", "7.10.1", Some("iw30"));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let of = |each: &[&str]| {
            let each = cache.find_each(&names(each)).expect("found");
            each.into_iter().map(|(name, kernel)| (name, kernel.id)).collect::<Vec<_>>()
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(of(&["stock", "iw30"])[0], pair("stock", "aaaa999922223333"));
        assert_eq!(of(&["iw20", "stock"])[1], pair("bbbb111122223333", "bbbb111122223333"), "`stock` is another one");
        assert_eq!(of(&["stock", "7.3"])[1], pair("7.3", "aaaa111122223333"));
        assert!(matches!(cache.find_each(&names(&["stock", "iw20", "iw30"])), Err(Error::Ambiguous { .. })));
        cache.remove(&cache.find(Some("6.16")).expect("there")).expect("removed");
        let error = cache.find_each(&names(&["stock", "iw20"])).expect_err("no base").to_string();
        assert!(error.contains("lab kernel build --version 6.16.0"), "{error}");
    }

    #[test]
    fn a_miss_lists_kernels_and_how_to_build_one() {
        let (_guard, cache) = filled();
        let error = cache.find(Some("7.4")).expect_err("not there").to_string();
        assert!(
            error.contains("7.3.4 (aaaa111122223333)") && error.contains("lab kernel build --version 7.4"),
            "{error}"
        );
        let error = cache.find(Some("x; reboot")).expect_err("not a version").to_string();
        assert!(error.contains("by id or release") && !error.contains("--version"), "{error}");
        let empty = Cache::at("/nonexistent/kernels");
        assert!(empty.list().expect("nothing there is fine").is_empty());
        let error = empty.find(None).expect_err("nothing").to_string();
        assert!(error.contains("landspeed lab kernel build"), "{error}");
    }

    #[test]
    fn kernels_that_everyone_can_write_do_not_run() {
        let (_guard, cache) = filled();
        let kernel = cache.find_trusted(Some("7.3")).expect("only this user can write it");
        for at in [cache.root(), kernel.directory(), &kernel.executable] {
            let before = std::fs::metadata(at).expect("there").permissions();
            std::fs::set_permissions(at, Permissions::from_mode(0o777)).expect("own file");
            let error = cache.find_trusted(Some("7.3")).expect_err("writable").to_string();
            assert!(error.contains("writable by everyone (mode 0777)"), "{error}");
            std::fs::set_permissions(at, before).expect("own file");
        }
    }

    #[test]
    fn a_removed_kernel_is_gone_and_the_others_stay() {
        let (_guard, cache) = filled();
        cache.remove(&cache.find(Some("7.3")).expect("there")).expect("removed");
        assert_eq!(cache.list().expect("readable").len(), 2);
        assert!(!cache.root().join("aaaa111122223333").exists());
        assert!(cache.unfinished().expect("readable").is_empty());
    }

    #[test]
    fn incomplete_kernels_are_not_listed() {
        let (_guard, cache) = filled();
        std::fs::remove_file(cache.root().join("bbbb111122223333").join(EXECUTABLE)).expect("removed");
        std::fs::write(cache.root().join("aaaa999922223333").join(RECORD), "{").expect("written");
        std::fs::create_dir_all(cache.build_directory("cccc")).expect("made");
        assert_eq!(cache.list().expect("readable").len(), 1);
    }

    #[test]
    fn only_interrupted_builds_are_cleared() {
        let (_guard, cache) = filled();
        let (idle, busy) = (cache.build_directory("1dle"), cache.build_directory("b0sy"));
        for directory in [&idle, &busy] {
            std::fs::create_dir_all(directory.join("src")).expect("made");
        }
        let _lock = Lock::try_take(&lock_of(&busy)).expect("lockable").expect("free");
        assert_eq!(cache.clear_unfinished().expect("cleared"), std::slice::from_ref(&busy));
        assert!(!idle.exists() && busy.exists());
    }

    #[test]
    fn the_executable_is_where_the_record_is() {
        let (_guard, cache) = filled();
        let kernel = cache.find(Some("7.3")).expect("there");
        assert_eq!(kernel.executable, cache.root().join("aaaa111122223333/vmlinux"));
        assert!(kernel.supports("CONFIG_NET_SCH_FQ").expect("readable"));
        assert!(!kernel.supports("NET_SCH_CAKE").expect("readable"));
    }

    #[test]
    fn the_cache_option_precedes_environment_and_home() {
        let all = |name: &str| {
            Some(OsString::from(match name {
                ENVIRONMENT => "/kernels",
                "XDG_CACHE_HOME" => "/xdg",
                _ => "/home/me",
            }))
        };
        let root = |asked: Option<&str>, environment: &dyn Fn(&str) -> Option<OsString>| {
            Cache::choose(asked.map(Path::new), environment).map(|cache| cache.root)
        };
        assert_eq!(root(Some("/asked"), &all).expect("a place"), Path::new("/asked"));
        assert_eq!(root(None, &all).expect("a place"), Path::new("/kernels"));
        let xdg = |name: &str| all(name).filter(|_| name != ENVIRONMENT);
        assert_eq!(root(None, &xdg).expect("a place"), Path::new("/xdg/landspeed/kernels"));
        let home = |name: &str| all(name).filter(|_| name == "HOME");
        assert_eq!(root(None, &home).expect("a place"), Path::new("/home/me/.cache/landspeed/kernels"));
        assert!(matches!(root(None, &|_| None), Err(Error::NoHome)));
    }
}
