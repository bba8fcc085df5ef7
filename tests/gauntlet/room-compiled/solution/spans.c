#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define LARGEST 1000000000000LL
#define LONGEST 32

typedef struct {
    char *name, *key;
    long long start, end;
} Span;

/* The number at *text, which is moved behind it; negative if there is none up to LARGEST. */
static long long number(const char **text) {
    long long value = 0;
    if (**text < '0' || **text > '9') return -1;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        value = value * 10 + (**text - '0');
        if (value > LARGEST) return -1;
    }
    return value;
}

static int is_name_character(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static int parse(const char *text, Span *span) {
    size_t length = 0;
    while (is_name_character(text[length])) length++;
    if (!length || length > LONGEST || text[length] != ' ') return 0;
    span->name = strndup(text, length);
    text += length;
    text++;
    span->start = number(&text);
    if (span->start < 0 || *text++ != ' ') return 0;
    span->end = number(&text);
    return span->end > span->start && !*text;
}

static int by_key(const void *left, const void *right) {
    const Span *a = left, *b = right;
    return strcmp(a->key, b->key);
}

int main(int argc, char **argv) {
    int total = 0;
    long long gap = 0;
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        puts("spans " VERSION);
        return 0;
    }
    while (*++argv) {
        const char *text = argv[1] ? argv[1] : "";
        if (!strcmp(*argv, "--total")) {
            total = 1;
        } else if (!strcmp(*argv, "--gap") && (gap = number(&text)) >= 0 && !*text) {
            argv++;
        } else {
            fprintf(stderr, "usage: spans [--total] [--gap N] | --version\n");
            return 64;
        }
    }

    Span *spans = NULL;
    size_t count = 0, size = 0;
    char *line = NULL;
    ssize_t length;
    while ((length = getline(&line, &size, stdin)) != -1) {
        if (line[length - 1] == '\n') line[--length] = 0;
        spans = realloc(spans, ++count * sizeof *spans);
        Span *span = spans + count - 1;
        if (strlen(line) != (size_t)length || !parse(line, span)) {
            fprintf(stderr, "line %zu: not NAME START END\n", count);
            return 2;
        }
        /* Names in the order of their bytes, then numbers: a space comes before all that names are made of. */
        asprintf(&span->key, "%s %012lld", span->name, span->start);
    }
    if (count) qsort(spans, count, sizeof *spans, by_key);

    Span *end = spans + count;
    long long sum = 0;
    while (spans != end) {
        Span joined = *spans++;
        for (; spans != end && !strcmp(spans->name, joined.name) && spans->start - joined.end <= gap; spans++)
            joined.end = MAX(joined.end, spans->end);
        sum += joined.end - joined.start;
        if (!total) printf("%s %lld %lld\n", joined.name, joined.start, joined.end);
        if (spans == end || strcmp(spans->name, joined.name)) {
            if (total) printf("%s %lld\n", joined.name, sum);
            sum = 0;
        }
    }
    return 0;
}
