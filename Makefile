# SPDX-License-Identifier: Apache-2.0
#
# `make` says what there is. Each target installs what it needs first; see scripts/install-dependencies.

PREFIX = /usr/local
DESTDIR =
# A connection for `make run` to supervise: make run OPEN=tcp://host:port
OPEN =
# How many steps `make soak` takes, and the seed that it begins with; without one a new one, which it prints.
STEPS = 20000
SEED =
# How many sequences `make sim` runs, and the seed of the first one.
SEQUENCES = 1000000
FIRST = 1
# How long `make fuzz` searches with each of its targets, and which (`Fuzz/Seeds` has their names); without a name all.
SECONDS = 60
TARGET =
# How many times `make steady` runs the suite.
N = 20
# Which rows of the table `make bench` measures; without a name all of them.
ROWS =
# Beside which earlier revision; each row has the figures of both then.
COMPARE =
# What `make run` and `make demo` build. Debug, because after a change it is there in seconds; `make install` and
# `make bench` build for release.
CONFIGURATION = debug

export OPEN

BUILT = .build/$(CONFIGURATION)
# Several packages are built in .build, the examples with the tests. The manifest of a build that one of them left there
# would be taken for the other's, and nothing be built whatever has changed.
BUILD = swift build --disable-build-manifest-caching
# What the examples are compiled to. It goes before each build of them: SwiftPM does not see, in a package that shares the
# folder of another one's build, that the library has changed, and links what was compiled for the one before.
EXAMPLES = push_phone.build reachability_watch.build sleeping_client*.build
# Each function is a section of its own, so that the linker finds those that nobody calls. What the loader resolves is
# resolved at the start and read-only from then on, and libraries are looked for in no folder of our own.
RELEASE = --configuration release --static-swift-stdlib -Xswiftc -Xfrontend -Xswiftc -function-sections \
    -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now --disable-local-rpath
SWIFT_SOURCES = $(wildcard Sources Plugins Tests Demo Examples Benchmarks/Sources Benchmarks/Package.swift Fuzz/Sources Fuzz/Package.swift) Package.swift

# What `make sanitize` has the compiler watch for: address or thread.
SANITIZER = address

.PHONY: help build run check suite test steady sanitize soak sim fuzz demo demo-svg docs release install uninstall deb bench bench-build lint deps deps-test

help:
	@echo 'make run [OPEN=tcp://host:port]  build the agent and run it here, in the foreground'
	@echo 'make check                       build, and run the tests that need no kernel and no server'
	@echo 'make test                        build and run every test, and each fuzzer for some seconds'
	@echo 'make steady [N=20]               run the suite so often, every second time on a busy machine'
	@echo 'make sanitize [SANITIZER=address] run the suite under AddressSanitizer, or with SANITIZER=thread ThreadSanitizer'
	@echo 'make soak [SEED=] [STEPS=20000]  churn a network at random and hold every verdict against the kernel'
	@echo 'make sim [SEQUENCES=] [FIRST=]   run a million faulty networks in virtual time, and hold every rule at every step'
	@echo 'make fuzz [TARGET=] [SECONDS=60] throw mutated bytes at every reader of foreign bytes, sanitizers on'
	@echo 'make demo                        watch the agent in a network of namespaces: cables pulled, a broker restarted'
	@echo 'make demo-svg                    record a run of it as the picture of README.md'
	@echo 'make docs                        build the documentation as a site of static files, and check its links'
	@echo 'make bench [ROWS=] [COMPARE=rev] measure it, beside its peers, and beside an earlier revision'
	@echo 'make lint                        check format and layering'
	@echo 'make build                       build everything for debugging'
	@echo 'make install [PREFIX=/usr/local] [DESTDIR=]'
	@echo '                                 build for release; install binaries, units, manual pages, completions'
	@echo 'make uninstall [PREFIX=] [DESTDIR=]'
	@echo '                                 remove what `make install` installed there'
	@echo 'make deb                         build for release; make Debian packages and check them'
	@echo 'make deps, make deps-test        install the Debian packages that building, that testing needs'

deps:
	@scripts/install-dependencies build

deps-test:
	@scripts/install-dependencies test

build: deps
	$(BUILD)

run: deps
	$(BUILD) --configuration $(CONFIGURATION) --product dialtoned
	$(BUILD) --configuration $(CONFIGURATION) --product dialtone-tls
	$(BUILD) --configuration $(CONFIGURATION) --product dialtone
	@exec scripts/run $(BUILT) $(if $(OPEN),'$(OPEN)')

# Everything that needs neither the kernel nor a server, for the time between two changes.
check: deps
	$(BUILD) --build-tests
	@scripts/run-tests --pure

# Built outside, since the sandbox has no network to fetch packages from; run inside, away from this machine's network.
# The examples are a package of their own, built where the library is built already: that makes it seconds.
suite: deps-test
	$(BUILD) --build-tests
	@rm -rf $(addprefix .build/debug/,$(EXAMPLES))
	$(BUILD) --package-path Examples --scratch-path .build
	@scripts/python-varlink >/dev/null || echo 'Without PyPI, the tests with foreign Varlink clients and senders of pushes are skipped.'
	@scripts/bare-debian || echo 'Without a bare Debian, the test of the packages on one is skipped.'

test: suite
	@result=0; scripts/run-tests || result=1; scripts/fuzz 2 readers || result=1; exit $$result

steady: suite
	@scripts/install-dependencies steady
	@scripts/steady '$(N)'

# AddressSanitizer's search for leaks is off: it reads memory for pointers, and Swift keeps those to the counts of weak
# references shifted, so each of them would be a leak.
sanitize: SANITIZED = .build/$(SANITIZER)
sanitize: deps-test
	$(BUILD) --build-tests --sanitize $(SANITIZER) --scratch-path $(SANITIZED)
	@rm -rf $(addprefix $(SANITIZED)/debug/,$(EXAMPLES))
	$(BUILD) --sanitize $(SANITIZER) --package-path Examples --scratch-path $(SANITIZED)
	@BUILT=$(SANITIZED)/debug ASAN_OPTIONS=detect_leaks=0 scripts/run-tests

soak: deps-test
	$(BUILD) --build-tests
	@SOAK_SEED='$(SEED)' SOAK_STEPS='$(STEPS)' scripts/in-lab swift test --skip-build --disable-xctest --filter SoakTests

sim: deps-test
	$(BUILD) --build-tests
	@SIM_SEQUENCES='$(SEQUENCES)' SIM_FIRST='$(FIRST)' swift test --skip-build --disable-xctest --filter SimulationTests.SimulationTests

fuzz: deps-test
	scripts/fuzz $(SECONDS) $(or $(TARGET),readers interface)
	@[ -n '$(TARGET)' ] || $(MAKE) --no-print-directory -C Clients/C fuzz SECONDS='$(SECONDS)'

demo: deps-test
	$(BUILD) --configuration $(CONFIGURATION)
	@scripts/in-lab $(BUILT)/dialtone-demo

demo-svg: deps-test
	$(BUILD) --configuration $(CONFIGURATION)
	@scripts/demo-svg docs/demo.svg scripts/in-lab $(BUILT)/dialtone-demo

docs: deps
	@scripts/install-dependencies docs
	$(BUILD) --configuration $(CONFIGURATION) --product dialtone
	$(BUILD) --configuration $(CONFIGURATION) --product varlink-swift
	@scripts/docs $(BUILT) .build/docs
	@echo 'It is in .build/docs. To look at it: python3 -m http.server --bind localhost --directory .build/docs'

bench-build: deps-test
	$(BUILD) $(RELEASE) --product dialtoned
	$(BUILD) $(RELEASE) --product dialtone-tls
	$(BUILD) $(RELEASE) --product dialtone-session
	$(BUILD) --package-path Benchmarks --configuration release
	@scripts/python-varlink >/dev/null || echo 'Without PyPI, push is not measured.'

ifneq ($(COMPARE),)
bench:
	@scripts/bench-compare '$(COMPARE)' $(ROWS)
else
bench: bench-build
	@scripts/in-lab Benchmarks/.build/release/bench .build/release/dialtoned $(ROWS)
endif

lint: deps
	swift format lint --strict --recursive $(SWIFT_SOURCES)
	@for script in scripts/* .ci/run; do \
	    case $$(head -n 1 $$script) in *sh) echo "sh -n $$script"; sh -n $$script || exit 1 ;; esac; done
	$(BUILD) --package-path Benchmarks
	$(BUILD) --build-tests
	swift test --skip-build --disable-xctest --filter TidyTests

# What is installed, and what writes a part of it. Nothing is fetched where the dependencies are there.
release:
	$(BUILD) $(RELEASE) --product dialtoned
	$(BUILD) $(RELEASE) --product dialtone
	$(BUILD) $(RELEASE) --product dialtone-launcher
	$(BUILD) $(RELEASE) --product dialtone-tls
	$(BUILD) $(RELEASE) --product dialtone-session
	$(BUILD) $(RELEASE) --product varlink-swift

install: deps release
	scripts/install '$(DESTDIR)' '$(PREFIX)'

uninstall:
	scripts/uninstall '$(DESTDIR)' '$(PREFIX)'

deb: deps release
	@scripts/install-dependencies packages
	rm -rf .build/packages
	scripts/deb .build/release .build/packages
	lintian --allow-root --display-info --fail-on error,warning,info .build/packages/*.changes
	@echo 'They are in .build/packages. docs/packages.md says what is in each.'
