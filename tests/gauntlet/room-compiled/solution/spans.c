#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 1000000000000LL
#define LONGEST 32

typedef struct {
    char name[LONGEST + 1];
    long long start, end;
} Span;

/* The number at *text, which is moved behind it; -1 if there is none up to LARGEST. */
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
    if (length == 0 || length > LONGEST || text[length] != ' ') return 0;
    memcpy(span->name, text, length);
    span->name[length] = 0;
    text += length + 1;
    span->start = number(&text);
    if (span->start < 0 || *text++ != ' ') return 0;
    span->end = number(&text);
    return span->end > span->start && *text == 0;
}

static int by_name_and_start(const void *left, const void *right) {
    const Span *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names ? names : (a->start > b->start) - (a->start < b->start);
}

int main(int argc, char **argv) {
    int total = 0;
    long long gap = 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("spans " VERSION);
        return 0;
    }
    for (int at = 1; at < argc; at++) {
        const char *text = at + 1 < argc ? argv[at + 1] : "";
        if (strcmp(argv[at], "--total") == 0) {
            total = 1;
        } else if (strcmp(argv[at], "--gap") == 0 && (gap = number(&text)) >= 0 && *text == 0) {
            at++;
        } else {
            fprintf(stderr, "usage: spans [--total] [--gap N] | --version\n");
            return 64;
        }
    }

    Span *spans = NULL;
    size_t count = 0, room = 0, size = 0;
    char *line = NULL;
    ssize_t length;
    while ((length = getline(&line, &size, stdin)) > 0) {
        if (line[length - 1] == '\n') line[--length] = 0;
        if (count == room) spans = realloc(spans, (room = room * 2 + 64) * sizeof *spans);
        if (strlen(line) != (size_t)length || !parse(line, &spans[count])) {
            fprintf(stderr, "line %zu: not NAME START END\n", count + 1);
            return 2;
        }
        count++;
    }
    if (count) qsort(spans, count, sizeof *spans, by_name_and_start);

    long long sum = 0;
    for (size_t at = 0; at < count;) {
        Span joined = spans[at++];
        while (at < count && strcmp(spans[at].name, joined.name) == 0 && spans[at].start - joined.end <= gap) {
            if (spans[at].end > joined.end) joined.end = spans[at].end;
            at++;
        }
        sum += joined.end - joined.start;
        if (!total) printf("%s %lld %lld\n", joined.name, joined.start, joined.end);
        if (at == count || strcmp(spans[at].name, joined.name) != 0) {
            if (total) printf("%s %lld\n", joined.name, sum);
            sum = 0;
        }
    }
    return 0;
}
