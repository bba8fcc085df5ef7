# differs: renders to temporary files that are moved into place, stops at the first failure, notes the parts itself, compares index and SUMS with what is there on every make, and removes what belongs to pages and tables that are gone
cat > Makefile <<'M'
# Builds the handbook below build/.
include config.mk
export TITLE EDITION
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PREFIX := /usr/local
DESTDIR :=
# One page that fails must not keep the others from being tried.
MAKEFLAGS += --keep-going
share := $(DESTDIR)$(PREFIX)/share/port-manual

pages := $(sort $(patsubst pages/%.txt,%,$(wildcard pages/*.txt)))
tables := $(sort $(patsubst data/%.tsv,%,$(wildcard data/*.tsv)))
html := $(pages:%=build/%.html)
thtml := $(tables:%=build/tables/%.html)
# Parts of the page, read anew by each make; one that is missing is always "changed".
parts_of = $(sort $(shell awk '/^include: / { print "parts/" $$2 ".txt" }' pages/$(1).txt))
common := layout/header.html layout/footer.html tools/render.awk config.mk

.PHONY: all install clean FORCE
all: build/SUMS

define page_rule
build/$(1).html: pages/$(1).txt $$(wildcard $$(call parts_of,$(1))) $$(wildcard $(common)) $$(if $$(filter-out $$(wildcard $(common) $$(call parts_of,$(1))),$(common) $$(call parts_of,$(1))),FORCE)
	@mkdir -p build
	@rm -f $$@
	@awk -v title="$$$$TITLE" -v edition="$$$$EDITION" -f tools/render.awk pages/$(1).txt > $$@.part
	@mv $$@.part $$@
endef
$(foreach page,$(pages),$(eval $(call page_rule,$(page))))

build/tables/%.html: data/%.tsv $(wildcard tools/table.py) $(if $(wildcard tools/table.py),,FORCE)
	@mkdir -p build/tables
	@rm -f $@
	@python3 -B tools/table.py $< > $@.part
	@mv $@.part $@

build/index.html: FORCE
	@mkdir -p build
	@tools/index.sh "$$TITLE" "$(pages)" "$(tables)" > $@.part
	@if cmp -s $@.part $@; then rm $@.part; else mv $@.part $@; fi

build/SUMS: $(html) $(thtml) build/index.html FORCE
	@mkdir -p build/tables; shopt -s nullglob; cd build; \
	wanted=' $(html:build/%=%) $(thtml:build/%=%) index.html '; \
	for old in *.html tables/*.html; do [[ $$wanted == *" $$old "* ]] || rm "$$old"; done; \
	sha256sum $(html:build/%=%) $(thtml:build/%=%) index.html > SUMS.part; \
	if cmp -s SUMS.part SUMS; then rm SUMS.part; else mv SUMS.part SUMS; fi

install: all
	mkdir -p '$(share)/tables'
	install -m 0644 -t '$(share)' $(html) build/index.html build/SUMS
	$(if $(tables),install -m 0644 -t '$(share)/tables' $(thtml))

clean:
	rm -rf build

FORCE:
M
