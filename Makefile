# Everything is a task of one program, `cargo xtask`; short names for its tasks.
.PHONY: help demo test test-long check bench docs dist wheel deb rpm oci tarball sbom packages install install-pscheduler uninstall clean

# For `make install`: where it goes, and which program.
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
BINARY ?= target/dist/landspeed
BINDIR = $(PREFIX)/bin
MANDIR = $(PREFIX)/share/man/man1
BASH = $(PREFIX)/share/bash-completion/completions/landspeed
ZSH = $(PREFIX)/share/zsh/site-functions/_landspeed
FISH = $(PREFIX)/share/fish/vendor_completions.d/landspeed.fish
UNIT = $(PREFIX)/lib/systemd/system/landspeed.service
SYSUSERS = $(PREFIX)/lib/sysusers.d/landspeed.conf
EXAMPLES = $(PREFIX)/share/doc/landspeed/examples
CONFIG = $(SYSCONFDIR)/landspeed/serve.toml
# For `make install-pscheduler`: where pScheduler is; Debian's packages use /usr/lib, RPMs /usr/libexec.
PSCHEDULER ?= $(firstword $(wildcard /usr/libexec/pscheduler /usr/lib/pscheduler) /usr/libexec/pscheduler)
PSCHEDULER_TOOL = $(PSCHEDULER)/classes/tool/landspeed
PSCHEDULER_CONFIG = $(SYSCONFDIR)/pscheduler/tool/landspeed.conf

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile

# What building the lab's kernel needs, as Debian's packages. Without root or apt, the demo names what is missing.
KERNEL_PACKAGES = gcc libc6-dev binutils make flex bison bc mawk tar xz-utils debian-archive-keyring
# The kernel is kept where `make test` keeps it.
demo: export LANDSPEED_KERNELS ?= $(CURDIR)/target/kernels
demo: ## four claims about this machine, each checked: target/demo/index.html; builds the lab's kernel once (NO_LAB=1: without the lab)
	cargo build --release --package landspeed
	@$(if $(NO_LAB),true ||) ls $$LANDSPEED_KERNELS/*/vmlinux >/dev/null 2>&1 || \
	  [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || dpkg -s $(KERNEL_PACKAGES) >/dev/null 2>&1 || \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
	    apt-get -qq install --yes --no-install-recommends $(KERNEL_PACKAGES) > /dev/null; } || true
	@cargo run --quiet --release --package landspeed -- demo --out target/demo $(if $(NO_LAB),--no-lab,--build-kernel)

check: ## format, lints, law, unit and golden tests; no root, no network
	cargo xtask check

# Programs are installed while everything is built. One build of everything first: `cargo xtask` alone compiles its
# dependencies with other features, and then again.
XTASK = $(or $(CARGO_TARGET_DIR),target)/$(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')/debug/landspeed-xtask
test: ## check, every other test, licences, web; installs missing programs if it may
	@echo "building everything, and installing missing programs"; began=$$(date +%s); sh .ci/programs & cargo build --workspace --all-targets --quiet; wait; \
	if [ -x $(XTASK) ]; then echo "build: $$(($$(date +%s) - began)) s"; $(XTASK) test; else cargo xtask test; fi

test-long: ## the tests that take minutes each: Slurm, every release of iperf3, whole searches
	cargo xtask test --long

bench: ## beside iperf3, nuttcp, xfr and sockperf, interleaved; about half an hour
	cargo xtask bench

docs: ## target/docs/index.html: the documentation site; compiles mdBook once
	cargo xtask docs

dist: ## target/dist/landspeed: one static binary
	cargo xtask dist

wheel: target/dist/landspeed ## target/wheels: the Python package with the static binary in it
	python3 -m pip wheel --quiet --no-deps --wheel-dir target/wheels ./python

target/dist/landspeed:
	cargo xtask dist

deb rpm oci tarball sbom: $(BINARY)
	cargo xtask package $@ --binary $(BINARY)

packages: $(BINARY) ## target/packages: deb, rpm, OCI image, tarball, SBOM, SHA256SUMS; alone: make deb, rpm, oci, tarball, sbom
	cargo xtask package --binary $(BINARY)

install: $(BINARY) ## program, manual pages, completions, systemd unit, examples; PREFIX=/usr/local DESTDIR= BINARY=target/dist/landspeed
	install -D -m 755 $(BINARY) $(DESTDIR)$(BINDIR)/landspeed
	install -d $(DESTDIR)$(MANDIR) $(dir $(addprefix $(DESTDIR),$(BASH) $(ZSH) $(FISH)))
	rm -f $(DESTDIR)$(MANDIR)/landspeed.1 $(DESTDIR)$(MANDIR)/landspeed-*.1
	$(DESTDIR)$(BINDIR)/landspeed man $(DESTDIR)$(MANDIR)
	chmod 644 $(DESTDIR)$(MANDIR)/landspeed.1 $(DESTDIR)$(MANDIR)/landspeed-*.1
	$(DESTDIR)$(BINDIR)/landspeed completions bash > $(DESTDIR)$(BASH)
	$(DESTDIR)$(BINDIR)/landspeed completions zsh > $(DESTDIR)$(ZSH)
	$(DESTDIR)$(BINDIR)/landspeed completions fish > $(DESTDIR)$(FISH)
	chmod 644 $(addprefix $(DESTDIR),$(BASH) $(ZSH) $(FISH))
	install -d $(DESTDIR)$(dir $(UNIT))
	sed 's,/usr/local/bin/,$(BINDIR)/,; s,/etc/landspeed/,$(SYSCONFDIR)/landspeed/,' packaging/landspeed.service > $(DESTDIR)$(UNIT)
	chmod 644 $(DESTDIR)$(UNIT)
	install -D -m 644 packaging/sysusers.conf $(DESTDIR)$(SYSUSERS)
	install -d $(DESTDIR)$(EXAMPLES)
	install -m 644 packaging/prometheus/*.yml packaging/grafana/landspeed.json $(DESTDIR)$(EXAMPLES)
	test -e $(DESTDIR)$(CONFIG) || install -D -m 644 packaging/serve.toml $(DESTDIR)$(CONFIG)

install-pscheduler: ## perfSONAR's tool plugin; PSCHEDULER=/usr/libexec/pscheduler DESTDIR=
	install -d $(DESTDIR)$(PSCHEDULER_TOOL)/landspeed_tool
	cd packaging/pscheduler && install -m 755 can-run duration enumerate merged-results participant-data run $(DESTDIR)$(PSCHEDULER_TOOL)
	install -m 644 packaging/pscheduler/landspeed_tool/*.py $(DESTDIR)$(PSCHEDULER_TOOL)/landspeed_tool
	test -e $(DESTDIR)$(PSCHEDULER_CONFIG) || install -D -m 644 packaging/pscheduler/landspeed.conf $(DESTDIR)$(PSCHEDULER_CONFIG)

uninstall: ## take all of it away again, except the configuration
	rm -f $(DESTDIR)$(BINDIR)/landspeed $(DESTDIR)$(MANDIR)/landspeed.1 $(DESTDIR)$(MANDIR)/landspeed-*.1
	rm -f $(addprefix $(DESTDIR),$(BASH) $(ZSH) $(FISH) $(UNIT) $(SYSUSERS))
	rm -rf $(DESTDIR)$(PSCHEDULER_TOOL) $(DESTDIR)$(EXAMPLES)

clean: ## what building and testing left
	cargo clean
	rm -rf web/node_modules
