//! The second half of a build: configuring, compiling, and adding the kernel to the cache.

use std::fs;
use std::path::Path;
use std::process::Command;

use landspeed_sys::clock;

use super::{Builder, Event, Material, Origin, Step, config_hash};
use crate::kernel::config::{self, Features};
use crate::kernel::error::Error;
use crate::kernel::make::{APPROX_OBJECTS, Make, MakeOutput};
use crate::kernel::patch::Patch;
use crate::kernel::record::{CONFIG, EXECUTABLE, Kernel, SCHEMA};
use crate::kernel::{edits, hash};

impl Builder<'_> {
    pub(super) fn compile(
        &mut self,
        origin: &Origin,
        id: &str,
        build: &Path,
        source: &Path,
    ) -> Result<Kernel, Error> {
        let started = clock::monotonic_ns();
        // In a subdirectory of the source, make uses relative paths: a copy of both compiles only what changes.
        let objects = source.join("objects");
        let log = build.join("build.log");
        let make = Make { source, objects: &objects, log, place: build, interrupted: self.interrupted };
        let missing_features = self.configure(&make)?;
        let with = self.name.as_ref().map(|name| format!(" with {name}")).unwrap_or_default();
        self.begin(Step::Compile, format!("Linux {}{with}", origin.kernel));
        // The number of objects that a patch changes is unknown.
        let counted = !matches!(origin.material, Material::Tree(_));
        // make continues an interrupted build.
        let counter = build.join("objects.count");
        let mut done: u64 = fs::read_to_string(&counter).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let watch = &mut *self.watch;
        let jobs = self.request.jobs.unwrap_or_else(cores).max(1);
        let result = make.run("compiling", "vmlinux", jobs, |said| match said {
            MakeOutput::Object => {
                done += 1;
                if counted {
                    watch(Event::Progress { step: Step::Compile, done, total: APPROX_OBJECTS.max(done) });
                }
            }
            MakeOutput::Link => watch(Event::Begins(Step::Link, EXECUTABLE.to_owned())),
            MakeOutput::Other => {}
        });
        let _ = fs::write(&counter, done.to_string());
        result?;
        self.keep(origin, id, build, &objects, missing_features, started)
    }

    /// Configures the kernel, unless an earlier run did, and checks the result. Returns the missing features.
    fn configure(&mut self, make: &Make<'_>) -> Result<Vec<String>, Error> {
        let config = make.objects.join(".config");
        let stamp = make.place.join("config.ready");
        self.begin(Step::Configure, String::new());
        if !stamp.exists() {
            fs::create_dir_all(make.objects).map_err(Error::io("create", make.objects))?;
            make.run("configuring", "tinyconfig", 1, |_| ())?;
            let tiny = fs::read_to_string(&config).map_err(Error::io("read", &config))?;
            // Of two assignments to a symbol, the later one is effective.
            fs::write(&config, tiny + config::FRAGMENT).map_err(Error::io("write", &config))?;
            make.run("configuring", "olddefconfig", 1, |_| ())?;
        }
        let text = fs::read_to_string(&config).map_err(Error::io("read", &config))?;
        let difference = config::compare(config::FRAGMENT, &Features::parse(&text));
        if !difference.core.is_empty() {
            return Err(Error::Config(difference.core));
        }
        if !difference.features.is_empty() {
            self.note(format!(
                "this version has no {}: scenarios that need it cannot run on it",
                difference.features.join(", ")
            ));
        }
        if !difference.on.is_empty() {
            self.note(format!("this version cannot switch off {}: runs may be slower", difference.on.join(", ")));
        }
        fs::write(&stamp, "").map_err(Error::io("write", &stamp))?;
        Ok(difference.features)
    }

    /// Moves executable, configuration and record to the cache, with one rename.
    fn keep(
        &mut self,
        origin: &Origin,
        id: &str,
        build: &Path,
        objects: &Path,
        missing_features: Vec<String>,
        started: u64,
    ) -> Result<Kernel, Error> {
        let ready = build.join("ready");
        if ready.exists() {
            fs::remove_dir_all(&ready).map_err(Error::io("remove", &ready))?;
        }
        fs::create_dir_all(&ready).map_err(Error::io("create", &ready))?;
        let executable = ready.join(EXECUTABLE);
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(&executable).arg(objects.join("vmlinux"));
        self.job("stripping the kernel", strip, build).run(|_| ())?;
        let mut version = Command::new(&executable);
        version.arg("--version");
        let said = self.job("starting the kernel", version, build).output().map_err(|error| match error {
            Error::Interrupted(place) => Error::Interrupted(place),
            other => Error::DoesNotRun(other.to_string()),
        })?;
        let release = said.split_whitespace().next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let release = release.ok_or_else(|| {
            Error::DoesNotRun(format!("its version should be {}, and is `{}`", origin.kernel, said.trim()))
        })?;
        fs::copy(objects.join(".config"), ready.join(CONFIG)).map_err(Error::io("write", &ready))?;
        let hash = hash::file(&executable, self.interrupted).map_err(Error::io("read", &executable))?;
        let kernel = Kernel {
            schema: SCHEMA.to_owned(),
            id: id.to_owned(),
            name: self.name.clone(),
            release: release.to_owned(),
            executable: self.cache.kernel_directory(id).join(EXECUTABLE),
            source: origin.source.clone(),
            config_hash: config_hash(),
            edits_hash: edits::hash(),
            edits: edits::Edit::all().into_iter().map(|edit| edit.name).collect(),
            patches: self.patches.iter().map(Patch::record).collect(),
            compiler: self.compiler.clone(),
            built_at_ns: clock::realtime_ns(),
            build_seconds: (clock::monotonic_ns() - started) as f64 / 1e9,
            size_bytes: executable.metadata().map_err(Error::io("read", &executable))?.len(),
            executable_hash: hash.ok_or_else(|| Error::Interrupted(build.to_owned()))?,
            missing_features,
        };
        kernel.save(&ready)?;
        for (number, patch) in self.patches.iter().enumerate() {
            let name = patch.copy_name(number);
            fs::copy(build.join(&name), ready.join(&name)).map_err(Error::io("copy", &build.join(&name)))?;
        }
        if let Some(old) = self.cache.exact(id) {
            self.cache.remove(&old)?;
        }
        let place = self.cache.kernel_directory(id);
        if place.exists() {
            // An incomplete kernel, left by another program.
            fs::remove_dir_all(&place).map_err(Error::io("remove", &place))?;
        }
        fs::rename(&ready, &place).map_err(Error::io("create", &place))?;
        Ok(kernel)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
