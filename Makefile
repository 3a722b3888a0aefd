# Everything is a task of one program, `cargo xtask`; these are the names fingers know.
.PHONY: help demo test check bench dist clean

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile

demo: ## build, then tell the whole story on this machine: no root, no second host, under two minutes
	cargo run --release --package landspeed -- demo

test: ## format, lints, law, every test, licences, web; installs what is missing and it may
	cargo xtask test

check: ## the fast part: format, lints, law
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo xtask law

bench: ## beside iperf3, nuttcp, xfr and sockperf, interleaved; about half an hour
	cargo xtask bench

dist: ## target/dist/landspeed: one static binary
	cargo xtask dist

clean: ## what building and testing left
	cargo clean
	rm -rf web/node_modules
