/* SPDX-License-Identifier: MIT */
/* `somashim top` on a terminal, by ncurses. */
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/plural.h"
#include "cli/size_text.h"
#include "cli/top.h"

#define ANSWER_MS 50 /* how long processes have to bring their figures up to date */

struct row {
	const struct ss_top_process *process;
	const struct ss_live_pool *pool; /* NULL: the process has no figures */
	double allocations, frees;       /* per second; negative: unknown */
};

static const struct order {
	const char *name;
	uint64_t (*key)(const struct row *);
} orders[];

static uint64_t key_reserved(const struct row *r)
{
	return r->pool ? r->pool->reserved : 0;
}
static uint64_t key_used(const struct row *r)
{
	return r->pool ? r->pool->used : 0;
}
static uint64_t key_rate(const struct row *r)
{
	return r->allocations > 0 ? (uint64_t)r->allocations : 0;
}
static uint64_t key_pid(const struct row *r)
{
	return UINT32_MAX - r->process->name.pid;
}

static const struct order orders[] = {
	{"reserved", key_reserved},
	{"used", key_used},
	{"rate", key_rate},
	{"pid", key_pid},
};

#define ORDERS (sizeof(orders) / sizeof(orders[0]))

static size_t order; /* of the rows */

static int compare(const void *a, const void *b)
{
	uint64_t x = orders[order].key(a), y = orders[order].key(b);

	if (x != y)
		return x < y ? 1 : -1;
	const struct row *r = a, *s = b;
	return r->process->name.pid < s->process->name.pid ?
		       -1 :
		       r->process->name.pid > s->process->name.pid;
}

/* NULL: there is none, or host memory is out. */
static struct row *make_rows(const struct ss_top_sample *s, size_t *count)
{
	size_t room = 0;

	*count = 0;
	for (size_t i = 0; i < s->count; i++)
		room += 1 + s->process[i]->page.figures.pool_count;
	struct row *rows = room ? calloc(room, sizeof(*rows)) : NULL;
	for (size_t i = 0; rows && i < s->count; i++) {
		const struct ss_top_process *p = s->process[i];
		if (p->result != SS_LIVE_OK) {
			rows[(*count)++] = (struct row){.process = p};
			continue;
		}
		for (uint32_t k = 0; k < p->page.figures.pool_count; k++) {
			rows[(*count)++] = (struct row){p, &p->page.figures.pool[k],
							p->allocation_rate[k], p->free_rate[k]};
		}
	}
	if (*count)
		qsort(rows, *count, sizeof(*rows), compare);
	return rows;
}

static const char *rate_text(double rate, char out[16])
{
	if (rate < 0)
		strcpy(out, "-");
	else
		snprintf(out, 16, rate < 1e6 ? "%.0f" : "%.3g", rate);
	return out;
}

/* ---- columns --------------------------------------------------------------- */

enum column {
	PID,
	RANK,
	COMMAND,
	DEVICE,
	POOL,
	USED,
	RESERVED,
	IN_FLIGHT,
	USED_HIGH,
	RESERVED_HIGH,
	ALLOCATIONS,
	FREES,
	AGE
};

/* In the order in which they stand. */
static const struct {
	const char *title;
	int width;
	bool left; /* aligned */
} columns[] = {
	[PID] = {"PID", 8, false},
	[RANK] = {"RANK", 5, false},
	[COMMAND] = {"COMMAND", 15, true},
	[DEVICE] = {"DEVICE", 12, true},
	[POOL] = {"POOL", 8, true},
	[USED] = {"USED", 9, false},
	[RESERVED] = {"RESERVED", 9, false},
	[IN_FLIGHT] = {"IN FLIGHT", 9, false},
	[USED_HIGH] = {"USED HI", 9, false},
	[RESERVED_HIGH] = {"RES. HI", 9, false},
	[ALLOCATIONS] = {"ALLOC/S", 8, false},
	[FREES] = {"FREE/S", 8, false},
	[AGE] = {"OLD", 6, false},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* A narrow terminal leaves out the last of these columns. The columns that tell rows apart come
 * first. */
static const enum column importance[COLUMNS] = {
	PID,       USED,          RESERVED,  POOL,        DEVICE, COMMAND, RANK,
	IN_FLIGHT, RESERVED_HIGH, USED_HIGH, ALLOCATIONS, AGE,    FREES};

/* The columns that fit, a bit for each. */
static unsigned fitting(int width)
{
	unsigned shown = 0;

	for (size_t i = 0; i < COLUMNS; i++) {
		width -= columns[importance[i]].width + (i > 0);
		if (width < 0)
			break;
		shown |= 1u << importance[i];
	}
	return shown;
}

/* The text of a cell. Returns `out` or a text of the page. */
static const char *cell(const struct row *r, enum column c, char out[32])
{
	const struct ss_top_process *p = r->process;
	const struct ss_live_device *d = ss_top_device(&p->page.figures, r->pool->device);

	switch (c) {
	case PID: snprintf(out, 32, "%u", p->name.pid); break;
	case RANK: snprintf(out, 32, p->page.who.rank < 0 ? "-" : "%d", p->page.who.rank); break;
	case COMMAND: return p->page.who.command;
	case DEVICE:
		snprintf(out, 32, "device %u", r->pool->device);
		return d && d->pci[0] ? d->pci : out;
	case POOL: return r->pool->name;
	case USED: return ss_size_text(r->pool->used, out);
	case RESERVED: return ss_size_text(r->pool->reserved, out);
	case IN_FLIGHT: return ss_size_text(r->pool->in_flight, out);
	case USED_HIGH: return ss_size_text(r->pool->used_high, out);
	case RESERVED_HIGH: return ss_size_text(r->pool->reserved_high, out);
	case ALLOCATIONS: return rate_text(r->allocations, out);
	case FREES: return rate_text(r->frees, out);
	case AGE: /* of a process that has made no call since */
		snprintf(out, 32, p->age >= 2 ? "%.0f s" : "", p->age);
		break;
	}
	return out;
}

/* Draws a row, or with NULL the titles. Text that does not fit into a column or the line is cut. */
static void draw_row(int y, const struct row *r, unsigned shown)
{
	char text[32];
	int x = 0;

	if (r && !r->pool) {
		char line[128];
		snprintf(line, sizeof(line), "%8u not shown: %s", r->process->name.pid,
			 ss_top_problem(r->process->result));
		mvaddnstr(y, 0, line, COLS);
		return;
	}
	for (unsigned c = 0; c < COLUMNS; c++) {
		if (shown >> c & 1) {
			int width = columns[c].width;
			mvprintw(y, x, columns[c].left ? "%-*.*s" : "%*.*s", width, width,
				 r ? cell(r, c, text) : columns[c].title);
			x += width + 1;
		}
	}
}

/* ---- the rest of the screen -------------------------------------------------- */

/* Appends the text if all of it fits into `width` characters. */
static void append(char *line, size_t width, const char *text)
{
	if (strlen(line) + strlen(text) <= width)
		strcat(line, text);
}

static void draw_device(int y, const struct ss_top_device *d)
{
	enum { BAR = 20 };
	char line[256], part[64], size[16];
	size_t width = COLS < (int)sizeof(line) ? (size_t)COLS : sizeof(line) - 1;
	int bar = d->total ? (int)(BAR * (double)d->reserved / (double)d->total + 0.5) : 0;
	int used = d->total ? (int)(BAR * (double)d->used / (double)d->total + 0.5) : 0;
	int n = snprintf(line, sizeof(line), "%-12s ", d->pci);

	if (width >= 80) { /* else the numbers need the room */
		line[n++] = '[';
		for (int k = 0; k < BAR; k++)
			line[n++] = k < used ? '#' : k < bar ? '=' : ' ';
		strcpy(line + n, "] ");
	}
	snprintf(part, sizeof(part), "used %s", ss_size_text(d->used, size));
	append(line, width, part);
	snprintf(part, sizeof(part), ", reserved %s", ss_size_text(d->reserved, size));
	append(line, width, part);
	snprintf(part, sizeof(part), " of %s", ss_size_text(d->total, size));
	append(line, width, part);
	snprintf(part, sizeof(part), ", in flight %s", ss_size_text(d->in_flight, size));
	append(line, width, part);
	if (d->asleep) {
		snprintf(part, sizeof(part), ", asleep %s", ss_size_text(d->asleep, size));
		append(line, width, part);
	}
	if (d->kernel) {
		snprintf(part, sizeof(part), ", outside of the pools %s",
			 ss_size_text(d->rest, size));
		append(line, width, part);
	}
	snprintf(part, sizeof(part), ", %zu %s", d->processes,
		 ss_plural(d->processes, "process", "processes"));
	append(line, width, part);
	mvaddnstr(y, 0, line, COLS);
}

/* One line per device. Returns the next line. */
static int draw_devices(const struct ss_top_sample *s)
{
	struct ss_top_device devices[64];
	size_t count = ss_top_devices(s, devices, sizeof(devices) / sizeof(devices[0]));
	int y = 1;

	for (size_t i = 0; i < count && y < LINES - 4; i++)
		draw_device(y++, &devices[i]);
	return y;
}

/* The last line has the keys: the longest of these texts that fits. */
static void draw_keys(void)
{
	static const char *const texts[] = {"q quit  s sort  arrows, PgUp, PgDn, Home scroll",
					    "q quit  s sort  arrows PgUp PgDn Home",
					    "q quit  s sort  arrows", "q quit  s sort", "q quit"};

	for (size_t i = 0; LINES > 1 && i < sizeof(texts) / sizeof(texts[0]); i++) {
		/* The last cell of a screen would scroll it. */
		if (strlen(texts[i]) < (size_t)COLS) {
			mvaddstr(LINES - 1, 0, texts[i]);
			return;
		}
	}
}

static void draw(const struct ss_top_sample *s, size_t *top)
{
	unsigned shown = fitting(COLS);
	char title[96];
	size_t count;
	struct row *rows = make_rows(s, &count);

	erase();
	snprintf(title, sizeof(title), "somashim top: %zu %s, by %s", s->count,
		 ss_plural(s->count, "process", "processes"), orders[order].name);
	mvaddnstr(0, 0, title, COLS);
	int y = draw_devices(s);
	attron(A_REVERSE);
	draw_row(y, NULL, shown);
	attroff(A_REVERSE);
	size_t room = LINES > y + 2 ? (size_t)(LINES - y - 2) : 0;
	if (*top + room > count)
		*top = count > room ? count - room : 0;
	for (size_t i = *top; i < count && i - *top < room; i++)
		draw_row(++y, &rows[i], shown);
	draw_keys();
	refresh();
	free(rows);
}

/* False: the user is done. */
static bool handle_key(int key, size_t *top)
{
	switch (key) {
	case 'q':
	case 'Q':
	case 27: return false;
	case 's': order = (order + 1) % ORDERS; break;
	case KEY_DOWN: ++*top; break;
	case KEY_UP: *top -= *top > 0; break;
	case KEY_NPAGE: *top += (size_t)LINES / 2; break;
	case KEY_PPAGE: *top -= *top < (size_t)LINES / 2 ? *top : (size_t)LINES / 2; break;
	case KEY_HOME: *top = 0; break;
	default: break;
	}
	return true;
}

int ss_top_screen(const char *directory, const struct ss_top_filter *filter, unsigned delay_ms)
{
	struct ss_top_sample now, before = {0};
	bool goes_on = true, taken = true;
	size_t top = 0;
	int err = 0;

	setlocale(LC_ALL, "");
	if (!newterm(NULL, stdout, stdin)) {
		const char *terminal = getenv("TERM");
		return ss_cli_error("top: no terminal '%s'", terminal ? terminal : "");
	}
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	set_escdelay(25);
	while (goes_on) {
		taken = ss_top_take(directory, filter, ANSWER_MS, &before, &now);
		err = errno;
		if (!taken)
			break;
		draw(&now, &top);
		timeout((int)delay_ms);
		for (int key; goes_on && (key = getch()) != ERR;) {
			goes_on = handle_key(key, &top);
			draw(&now, &top);
		}
		ss_top_drop(&before);
		before = now;
	}
	endwin();
	ss_top_drop(&before);
	return taken ? 0 : ss_cli_error("top: %s: %s", directory, strerror(err));
}
