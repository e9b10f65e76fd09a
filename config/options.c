/* SPDX-License-Identifier: MIT */
/*
 * The one table of all SOMASHIM_ variables: name, type, default, help. The parser, the defaults,
 * the warnings and the printed tables all use it.
 *
 * This file runs in constructors, before the rest of the library. No lock, no state.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "config/options.h"
#include "config/values.h"

#define PREFIX "SOMASHIM_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum type {
	T_ENUM, /* int, one of `values` */
	/* int, a bit for each of `values` that is in a list; "all" is all bits of the values before
	 * it */
	T_SET,
	T_BOOL,
	T_SWITCH,     /* int: 0 or 1, as a T_BOOL, or 2, the third of `values` */
	T_MS,         /* uint64_t milliseconds */
	T_TIME,       /* the same, as seconds or with a unit: 30, 500ms, 5m, 1h */
	T_SIZE,       /* uint64_t bytes, "off" = 0 */
	T_POWER,      /* T_SIZE that must be a power of two */
	T_PERCENT,    /* uint64_t, 1 to 100 */
	T_PADDING,    /* T_SIZE of SS_PADDING_MOST at most */
	T_AMOUNT,     /* struct ss_amount */
	T_PER_DEVICE, /* struct ss_amount[SS_MAX_DEVICES] */
	T_PATH,       /* char[512] */
	T_TEXT,       /* the same */
};

struct option {
	const char *name;
	enum type type;
	size_t offset;
	const char *def;    /* as a user writes it; "" = unset */
	const char *values; /* T_ENUM: names in the order of the enum */
	const char *help;
};

/* Values of BACKING, as enum ss_backing of core/driver.h numbers them. */
enum { SS_OPTION_AUTO = 0, SS_OPTION_VMM = 3 };

#define AT(field) offsetof(struct ss_options, field)

static const struct option table[] = {
	{"BACKING", T_ENUM, AT(backing), "auto", "auto|hip|hsa|vmm",
	 "where the memory of pools comes from"},
	{"FENCE", T_ENUM, AT(fence), "auto", "auto|event|signal",
	 "how a stream shows that it has completed a free"},
	{"FREE_SYNC", T_ENUM, AT(free_sync), "auto", "auto|always|never",
	 "whether hipFree waits for the device"},
	{"RELEASE_THRESHOLD", T_PER_DEVICE, AT(threshold), "", NULL,
	 "idle bytes a pool keeps at a synchronization, max = all (0:1G,1:20% per device)"},
	{"INITIAL", T_AMOUNT, AT(initial), "", NULL,
	 "memory reserved at the first use of a device"},
	{"LIMIT", T_AMOUNT, AT(limit), "", NULL,
	 "the most that this process may take of each device, and is told to have; 0 = no limit"},
	{"DECAY_MS", T_MS, AT(decay_ms), "1000", NULL,
	 "age at which idle memory is released; 0 = at the next synchronization"},
	{"DECAY_THREAD", T_BOOL, AT(decay_thread), "1", NULL,
	 "a thread releases idle memory; 0 = synchronizations do"},
	{"GROWTH_WAIT_MS", T_MS, AT(growth_wait_ms), "1000", NULL,
	 "longest wait for pending frees that saves a new peak of a pool; 0 = never"},
	{"OOM_WAIT_MS", T_MS, AT(oom_wait_ms), "2000", NULL,
	 "longest wait for pending frees before out of memory is reported"},
	{"OOM_REPORTS", T_ENUM, AT(oom_reports), "few", "few|all|none",
	 "reports of out of memory; few: three, then a count at each power of ten"},
	{"ALIGN_LARGE", T_POWER, AT(align_large), "0", NULL,
	 "alignment of blocks of at least this size; 0 = off"},
	{"IPC_WHOLE", T_SIZE, AT(ipc_whole), "0", NULL,
	 "blocks this large get segments of their own, which can be exported; 0 = off"},
	{"SLEEP", T_ENUM, AT(sleep), "off", "off|pools|all",
	 "the memory that somashim sleep can lend to others: pools = of hipMallocAsync and pools, "
	 "all = of hipMalloc, too; it is on vmm then if BACKING is auto"},
	{"IDLE_SLEEP", T_TIME, AT(idle_sleep), "0", NULL,
	 "with SLEEP: sleeps by itself after so long without work for a device; 0 = never"},
	{"WAKE_WAIT_MS", T_MS, AT(wake_wait_ms), "300000", NULL,
	 "longest wait of a call for device memory when the process wakes; then out of memory"},
	{"DISABLE", T_BOOL, AT(disable), "0", NULL, "pass every call to the real runtime"},
	{"VERBOSE", T_BOOL, AT(verbose), "0", NULL, "say at start what was found and chosen"},
	{"STATS", T_SWITCH, AT(stats), "0", "0|1|json",
	 "print a table per device and pool at exit, or one line of JSON"},
	{"SELFTEST", T_SWITCH, AT(selftest), "0", "0|1|new",
	 "try the backings at start and say what works; new = vmm only, where nothing is "
	 "remembered of it"},
	{"REMEMBER", T_BOOL, AT(remember), "1", NULL,
	 "results of self-tests count for later processes, too"},
	{"API_TABLE", T_BOOL, AT(api_table), "0", NULL,
	 "intercept calls in the table of functions that AMD's builds have, too (RTLD_DEEPBIND)"},
	{"LOG", T_PATH, AT(log), "", NULL,
	 "file for messages instead of stderr; %p is the process id, %h the host, %r the rank, "
	 "%q{VAR} a variable"},
	{"CHECK", T_SET, AT(check), "", "order|bounds|free|leak|poison|guard|race|all|init|unused",
	 "look for errors of the program, as somashim check does; a list: order,free"},
	{"CHECK_RACES", T_ENUM, AT(check_races), "all", "all|use-before-alloc|use-after-free",
	 "which errors of order are looked for"},
	{"CHECK_API", T_ENUM, AT(check_api), "no", "no|explicit|all",
	 "report calls of HIP that fail; explicit = but for those of ROCm's own libraries"},
	{"CHECK_KERNEL", T_TEXT, AT(check_kernel), "", NULL,
	 "only the kernels whose name has this in it are checked; kne=NAME: the one of this name"},
	{"CHECK_INIT_PERCENT", T_PERCENT, AT(check_init_percent), "100", NULL,
	 "the tool init reports a copy to the host of which at least this much was never written"},
	{"CHECK_LAUNCHES", T_SIZE, AT(check_launches), "0", NULL,
	 "only the first N launches of kernels are checked; 0 = all"},
	{"CHECK_POSSIBLE", T_BOOL, AT(check_possible), "0", NULL,
	 "also report what may be no error: addresses in what a kernel is passed by value"},
	{"CHECK_PADDING", T_PADDING, AT(check_padding), "256", NULL,
	 "bytes behind each block that the tool bounds watches"},
	{"CHECK_FRONT", T_PADDING, AT(check_front), "0", NULL,
	 "bytes in front of each block that the tool bounds watches"},
	{"CHECK_GUARD", T_SIZE, AT(check_guard), "1M", NULL,
	 "blocks of at least this size end at an unmapped page with the tool guard"},
	{"CHECK_QUARANTINE", T_SIZE, AT(check_quarantine), "64M", NULL,
	 "bytes of freed blocks that the tool poison holds back, of hipFree and hipFreeAsync each"},
	{"CHECK_FILE", T_PATH, AT(check_file), "", NULL,
	 "file for what was found, lines of JSON, instead of text in the log; %p and so on too"},
	{"JOURNAL", T_PATH, AT(journal), "", NULL,
	 "file for a log of every allocation and free (RMM CSV); %p and so on too"},
	{"TRACE", T_PATH, AT(trace), "", NULL,
	 "file for a recording of all that happens to device memory (somashim record); %p and so "
	 "on too"},
	{"TRACE_RING", T_SIZE, AT(trace_ring), "0", NULL,
	 "the recording keeps the newest events in this much; somashim record --ring sets it; 0 = "
	 "all of them"},
	{"LIVE", T_PATH, AT(live), "/dev/shm", NULL,
	 "directory of the page that somashim top reads; off = none"},
	{"METRICS", T_PATH, AT(metrics), "", NULL,
	 "file of figures for Prometheus, rewritten every few seconds; %p and so on too"},
	{"REPORT", T_PATH, AT(report), "", NULL,
	 "file of somashim run, in which the ways into HIP are counted"},
};

static const struct option *option_find(const char *name)
{
	const struct option *o = table;
	while (o < table + ARRAY_LEN(table) && strcasecmp(o->name, name) != 0)
		o++;
	return o < table + ARRAY_LEN(table) ? o : NULL;
}

static void warn_entry(FILE *warn, const struct option *o, const char *entry, const char *why)
{
	if (warn) {
		fprintf(warn, "somashim: " PREFIX "%s: the entry '%s' %s and is left out\n",
			o->name, entry, why);
	}
}

/* Reads a list of entries for devices, separated by commas. Bad entries are reported on `warn`.
 * Returns true if all were good. With `strict` a bad entry leaves `out` unchanged; otherwise only
 * the bad entries are left out. */
static bool per_device_set(struct ss_amount *out, const struct option *o, const char *value,
			   bool strict, FILE *warn)
{
	struct ss_amount all[SS_MAX_DEVICES] = {0};
	struct ss_devices_seen seen = {0};
	bool good = true;

	for (;;) {
		char entry[64];
		size_t len = strcspn(value, ",");
		snprintf(entry, sizeof(entry), "%.*s", (int)(len < 63 ? len : 63), value);
		const char *why = len < sizeof(entry) ? ss_parse_device_entry(entry, all, &seen) :
							"is too long";
		if (why) {
			good = false;
			warn_entry(warn, o, entry, why);
		}
		if (value[len] == '\0')
			break;
		value += len + 1;
	}
	if (strict ? good : seen.each || seen.all)
		memcpy(out, all, sizeof(all));
	return good;
}

/* A list of names, divided by commas. */
static bool set_of_names(int *out, const char *values, const char *value)
{
	char word[32];
	int bits = 0, i;

	while (*value) {
		size_t len = strcspn(value, ",");
		for (i = 0; ss_enum_name(values, i, word, sizeof(word)); i++) {
			if (strlen(word) == len && strncasecmp(word, value, len) == 0) {
				bits |= strcmp(word, "all") == 0 ? (1 << i) - 1 : 1 << i;
				break;
			}
		}
		if (!ss_enum_name(values, i, word, sizeof(word)))
			return false;
		value += len + (value[len] == ',');
	}
	*out = bits;
	return true;
}

static bool option_set(struct ss_options *opt, const struct option *o, const char *value)
{
	void *field = (char *)opt + o->offset;
	uint64_t n = 0, frac;
	char word[32];
	const char *end;

	switch (o->type) {
	case T_ENUM:
		for (int i = 0; ss_enum_name(o->values, i, word, sizeof(word)); i++) {
			if (strcasecmp(word, value) == 0) {
				*(int *)field = i;
				return true;
			}
		}
		return false;
	case T_SET: return set_of_names(field, o->values, value);
	case T_BOOL: return ss_parse_bool(value, field);
	case T_SWITCH: {
		bool on = false;
		bool third = ss_enum_name(o->values, 2, word, sizeof(word)) &&
			     strcasecmp(value, word) == 0;
		if (!third && !ss_parse_bool(value, &on))
			return false;
		*(int *)field = third ? 2 : on;
		return true;
	}
	case T_MS:
		end = ss_parse_decimal(value, &n, &frac);
		if (!end || *end || frac)
			return false;
		*(uint64_t *)field = n < SS_FOR_EVER_MS ? n : SS_FOR_EVER_MS;
		return true;
	case T_TIME: return ss_parse_time(value, field);
	case T_SIZE:
	case T_POWER:
	case T_PADDING:
		if ((strcasecmp(value, "off") != 0 && !ss_parse_size(value, &n)) ||
		    (o->type == T_POWER && (n & (n - 1))) ||
		    (o->type == T_PADDING && n > SS_PADDING_MOST))
			return false;
		*(uint64_t *)field = n;
		return true;
	case T_PERCENT:
		end = ss_parse_decimal(value, &n, &frac);
		if (!end || *end || frac || n < 1 || n > 100)
			return false;
		*(uint64_t *)field = n;
		return true;
	case T_AMOUNT: return ss_amount_parse(value, field);
	case T_PER_DEVICE: return per_device_set(field, o, value, true, NULL);
	case T_PATH:
	case T_TEXT:
		if (strlen(value) >= sizeof(opt->log))
			return false;
		strcpy(field, value);
		return true;
	}
	return false;
}

void ss_options_default(struct ss_options *opt)
{
	memset(opt, 0, sizeof(*opt));
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].def[0])
			option_set(opt, &table[i], table[i].def);
}

bool ss_options_set(struct ss_options *opt, const char *name, const char *value)
{
	const struct option *o = option_find(name);
	return o && option_set(opt, o, value);
}

/* ---- the environment ---------------------------------------------------- */

static unsigned char least(int a, int b)
{
	return (unsigned char)(a < b ? a : b);
}

/* Edit distance; a swap of neighbours counts as one edit, and upper and lower case are the same. */
static int distance(const char *a, const char *b)
{
	enum { MAX = 40 };
	unsigned char d[MAX + 1][MAX + 1]; /* small: the thread may have little stack */
	int la = (int)strnlen(a, MAX), lb = (int)strnlen(b, MAX);

	for (int j = 0; j <= lb; j++)
		d[0][j] = (unsigned char)j;
	for (int i = 1; i <= la; i++) {
		d[i][0] = (unsigned char)i;
		for (int j = 1; j <= lb; j++) {
			int ca = toupper((unsigned char)a[i - 1]);
			int cb = toupper((unsigned char)b[j - 1]);
			d[i][j] = least(d[i - 1][j - 1] + (ca != cb),
					least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && ca == toupper((unsigned char)b[j - 2]) &&
			    cb == toupper((unsigned char)a[i - 2]))
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[la][lb];
}

int ss_name_distance(const char *name, const char *valid)
{
	bool part = strlen(name) > 2 && (strcasestr(valid, name) || strcasestr(name, valid));
	return part ? 0 : distance(name, valid);
}

static const char *nearest_name(const char *name)
{
	const char *best = table[0].name;
	for (size_t i = 1; i < ARRAY_LEN(table); i++)
		if (ss_name_distance(name, table[i].name) < ss_name_distance(name, best))
			best = table[i].name;
	return best;
}

static void nearest_value(const char *values, const char *value, char *out, size_t size)
{
	char word[32];
	int best = 1000;

	for (int i = 0; ss_enum_name(values, i, word, sizeof(word)); i++) {
		if (distance(value, word) < best) {
			best = distance(value, word);
			snprintf(out, size, "%s", word);
		}
	}
}

static const char *const type_texts[] = {
	[T_BOOL] = "0|1",
	[T_MS] = "milliseconds",
	[T_TIME] = "time (30s, 5m)",
	[T_SIZE] = "size",
	[T_POWER] = "size (power of 2)",
	[T_PADDING] = "size (4K at most)",
	[T_AMOUNT] = "size or percent",
	[T_PER_DEVICE] = "size, percent or max, per device",
	[T_PERCENT] = "percent",
	[T_PATH] = "path",
	[T_TEXT] = "text",
};

static const char *type_text(const struct option *o)
{
	return o->type == T_ENUM || o->type == T_SET || o->type == T_SWITCH ? o->values :
									      type_texts[o->type];
}

static void warn_value(FILE *warn, const struct option *o, const char *value)
{
	char near[64] = "";

	if (o->type == T_ENUM) {
		strcpy(near, "; did you mean ");
		nearest_value(o->values, value, near + strlen(near), 32);
		strcat(near, "?");
	}
	const char *is = o->type == T_ENUM || o->type == T_BOOL || o->type == T_SWITCH ? "none of" :
			 o->type == T_SET ? "no list of" :
			 o->type == T_MS  ? "not a number of" :
					    "not a";
	fprintf(warn, "somashim: " PREFIX "%s=%.64s is %s %s%s The default (%s) is used\n", o->name,
		value, is, type_text(o), near[0] ? near : ".", o->def[0] ? o->def : "unset");
}

/* HAMi, which shares GPUs between containers of Kubernetes, sets this variable to "<MiB>m". */
#define HAMI_LIMIT "HIP_DEVICE_MEMORY_LIMIT"

static void read_hami_limit(struct ss_options *opt, char **env, FILE *warn)
{
	const size_t len = sizeof(HAMI_LIMIT) - 1;

	for (; env && *env; env++) {
		if (strncmp(*env, HAMI_LIMIT, len) != 0 || (*env)[len] != '=' || !(*env)[len + 1])
			continue;
		if (!ss_amount_parse(*env + len + 1, &opt->limit) && warn) {
			fprintf(warn,
				"somashim: " HAMI_LIMIT "=%.64s is not a size and is ignored\n",
				*env + len + 1);
		}
	}
}

#define SEGMENT_MIN (2ull << 20) /* smallest segment of a pool; SS_FRAME of core/range/block.h */

/* Warns about limits that are valid, but probably not intended. */
static void warn_limit(const struct ss_amount *limit, FILE *warn)
{
	char text[32];

	if (!warn || !limit->set)
		return;
	ss_format_amount(limit, text, sizeof(text));
	if (limit->bytes == 0 && limit->percent <= 0) {
		fprintf(warn, "somashim: " PREFIX "LIMIT=0 means that there is no limit\n");
	} else if (limit->percent <= 0 && limit->bytes < SEGMENT_MIN) {
		fprintf(warn,
			"somashim: " PREFIX "LIMIT=%s is less than the smallest piece of memory "
			"that is taken from a device (2M): every allocation will fail\n",
			text);
	}
}

/* A backing that the user names wins over the one that sleep needs. */
static void warn_sleep(const struct ss_options *opt, FILE *warn)
{
	if (opt->sleep == SS_SLEEP_OFF) {
		if (opt->idle_sleep)
			fprintf(warn, "somashim: " PREFIX "IDLE_SLEEP has no effect without " PREFIX
				      "SLEEP=pools or all\n");
		return;
	}
	if (opt->backing != SS_OPTION_VMM)
		fprintf(warn, "somashim: " PREFIX "SLEEP: nothing can sleep, because " PREFIX
			      "BACKING names a backing that cannot\n");
	else if (opt->sleep == SS_SLEEP_ALL && opt->ipc_whole)
		fprintf(warn, "somashim: " PREFIX "SLEEP=all: memory of hipMalloc cannot sleep, "
			      "because " PREFIX "IPC_WHOLE wants segments for it\n");
}

void ss_options_read(struct ss_options *opt, char **env, FILE *warn)
{
	/* A program that runs with another user's rights ignores the environment of its caller. */
	char **first = env = getauxval(AT_SECURE) ? NULL : env;

	ss_options_default(opt);
	for (; env && *env; env++) {
		if (strncmp(*env, PREFIX, PREFIX_LEN) != 0)
			continue;
		const char *value = strchr(*env, '=');
		if (!value)
			continue;
		char name[64];
		size_t len = (size_t)(value++ - *env) - PREFIX_LEN;
		snprintf(name, sizeof(name), "%.*s", (int)(len < 63 ? len : 63), *env + PREFIX_LEN);

		/* The environment is case-sensitive, so a name in lower case is a typo, which must
		 * not be ignored silently. */
		const struct option *o = option_find(name);
		if (!o || strcmp(o->name, name) != 0) {
			if (warn) {
				fprintf(warn,
					"somashim: unknown variable " PREFIX "%s is "
					"ignored; did you mean " PREFIX "%s?\n",
					name, nearest_name(name));
			}
			continue;
		}
		if (*value && o->type == T_PER_DEVICE) {
			per_device_set((struct ss_amount *)((char *)opt + o->offset), o, value,
				       false, warn);
		} else if (*value && !option_set(opt, o, value) && warn) {
			warn_value(warn, o, value);
		}
	}
	if (!opt->limit.set)
		read_hami_limit(opt, first, warn);
	warn_limit(&opt->limit, warn);
	/* Only virtual memory can sleep. */
	opt->backing_by_sleep = opt->sleep != SS_SLEEP_OFF && opt->backing == SS_OPTION_AUTO;
	if (opt->backing_by_sleep)
		opt->backing = SS_OPTION_VMM;
	if (warn)
		warn_sleep(opt, warn);
}

/* ---- printing ----------------------------------------------------------- */

void ss_options_print(FILE *out, bool markdown)
{
	if (markdown)
		fprintf(out, "| variable | values | default | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct option *o = &table[i];
		if (!markdown) {
			fprintf(out, PREFIX "%-18s %-28s %-6s %s\n", o->name, type_text(o),
				o->def[0] ? o->def : "-", o->help);
			continue;
		}
		fprintf(out, "| `" PREFIX "%s` | ", o->name);
		for (const char *s = type_text(o); *s; s++)
			fprintf(out, "%.*s", *s == '|' ? 2 : 1, *s == '|' ? ", " : s);
		fprintf(out, " | %s | %s |\n", o->def[0] ? o->def : "-", o->help);
	}
}

bool ss_options_row(size_t i, struct ss_option_row *out)
{
	if (i >= ARRAY_LEN(table))
		return false;
	*out = (struct ss_option_row){table[i].name, type_text(&table[i]), table[i].def,
				      table[i].help};
	return true;
}

static void option_format(const struct ss_options *opt, const struct option *o, char *out,
			  size_t size)
{
	const void *field = (const char *)opt + o->offset;

	switch (o->type) {
	case T_ENUM:
	case T_SWITCH:
		if (!ss_enum_name(o->values, *(const int *)field, out, size))
			snprintf(out, size, "?");
		break;
	case T_SET: {
		char word[32];
		size_t at = 0;

		out[0] = '\0';
		for (int i = 0; ss_enum_name(o->values, i, word, sizeof(word)) && at < size; i++)
			if (*(const int *)field >> i & 1)
				at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "," : "",
						       word);
		break;
	}
	case T_BOOL: snprintf(out, size, "%d", *(const bool *)field); break;
	case T_TIME: ss_format_time(*(const uint64_t *)field, out, size); break;
	case T_MS: snprintf(out, size, "%llu", *(const unsigned long long *)field); break;
	case T_SIZE:
	case T_POWER:
	case T_PADDING: ss_format_size(*(const uint64_t *)field, out, size); break;
	case T_AMOUNT: ss_format_amount(field, out, size); break;
	case T_PER_DEVICE: ss_format_per_device(field, out, size); break;
	case T_PERCENT: snprintf(out, size, "%" PRIu64, *(const uint64_t *)field); break;
	case T_PATH:
	case T_TEXT: snprintf(out, size, "%s", (const char *)field); break;
	}
}

void ss_options_print_changed(const struct ss_options *opt, FILE *out)
{
	/* Allocated on the heap, because the thread's stack may be small. */
	struct {
		struct ss_options def;
		char now[1024], then[1024];
	} *t = malloc(sizeof(*t));
	if (!t)
		return;
	ss_options_default(&t->def);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		option_format(opt, &table[i], t->now, sizeof(t->now));
		option_format(&t->def, &table[i], t->then, sizeof(t->then));
		if (strcmp(t->now, t->then) != 0)
			fprintf(out, PREFIX "%s=%s\n", table[i].name, t->now);
	}
	free(t);
}
