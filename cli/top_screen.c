/* SPDX-License-Identifier: MIT */
/* `somashim top` on a terminal, by ncurses. */
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
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

static uint64_t key_reserved(const struct row *r) { return r->pool ? r->pool->reserved : 0; }
static uint64_t key_used(const struct row *r) { return r->pool ? r->pool->used : 0; }
static uint64_t key_rate(const struct row *r) {
	return r->allocations > 0 ? (uint64_t)r->allocations : 0;
}
static uint64_t key_pid(const struct row *r) { return UINT32_MAX - r->process->name.pid; }

static const struct order orders[] = {
	{ "reserved", key_reserved }, { "used", key_used }, { "rate", key_rate }, { "pid", key_pid },
};

#define ORDERS (sizeof(orders) / sizeof(orders[0]))

static size_t order; /* of the rows */

static int compare(const void *a, const void *b) {
	uint64_t x = orders[order].key(a), y = orders[order].key(b);

	if (x != y) {
		return x < y ? 1 : -1;
	}
	const struct row *r = a, *s = b;
	return r->process->name.pid < s->process->name.pid ? -1 :
		r->process->name.pid > s->process->name.pid;
}

/* NULL: there is none, or host memory is out. */
static struct row *make_rows(const struct ss_top_sample *s, size_t *count) {
	size_t room = 0;

	*count = 0;
	for (size_t i = 0; i < s->count; i++) {
		room += 1 + s->process[i]->page.figures.pool_count;
	}
	struct row *rows = room ? calloc(room, sizeof(*rows)) : NULL;
	for (size_t i = 0; rows && i < s->count; i++) {
		const struct ss_top_process *p = s->process[i];
		if (p->result != SS_LIVE_OK) {
			rows[(*count)++] = (struct row){ .process = p };
			continue;
		}
		for (uint32_t k = 0; k < p->page.figures.pool_count; k++) {
			rows[(*count)++] = (struct row){ p, &p->page.figures.pool[k],
				p->allocation_rate[k], p->free_rate[k] };
		}
	}
	if (*count) {
		qsort(rows, *count, sizeof(*rows), compare);
	}
	return rows;
}

static const char *rate_text(double rate, char out[16]) {
	if (rate < 0) {
		strcpy(out, "-");
	} else {
		snprintf(out, 16, rate < 1e6 ? "%.0f" : "%.3g", rate);
	}
	return out;
}

static void draw_row(int y, const struct row *r) {
	const struct ss_top_process *p = r->process;
	char rank[16] = "-", device[20], size[5][16], rate[2][16];

	if (!r->pool) {
		mvprintw(y, 0, "%8u not shown: %s", p->name.pid, ss_top_problem(p->result));
		return;
	}
	const struct ss_live_device *d = ss_top_device(&p->page.figures, r->pool->device);
	if (p->page.who.rank >= 0) {
		snprintf(rank, sizeof(rank), "%d", p->page.who.rank);
	}
	snprintf(device, sizeof(device), "device %u", r->pool->device);
	mvprintw(y, 0, "%8u %5s %-15s %-12s %-8s %9s %9s %9s %9s %9s %8s %8s", p->name.pid, rank,
		p->page.who.command, d && d->pci[0] ? d->pci : device, r->pool->name,
		ss_size_text(r->pool->used, size[0]), ss_size_text(r->pool->reserved, size[1]),
		ss_size_text(r->pool->in_flight, size[2]), ss_size_text(r->pool->used_high, size[3]),
		ss_size_text(r->pool->reserved_high, size[4]), rate_text(r->allocations, rate[0]),
		rate_text(r->frees, rate[1]));
	/* Figures of a process that has made no call since. */
	if (p->age >= 2) {
		printw("  %.0f s old", p->age);
	}
}

/* One line per device. Returns the next line. */
static int draw_devices(const struct ss_top_sample *s) {
	struct ss_top_device devices[64];
	char size[4][16];
	size_t count = ss_top_devices(s, devices, sizeof(devices) / sizeof(devices[0]));
	int y = 1;

	for (size_t i = 0; i < count && y < LINES - 4; i++) {
		const struct ss_top_device *d = &devices[i];
		int bar = d->total ? (int)(20.0 * (double)d->reserved / (double)d->total + 0.5) : 0;
		int used = d->total ? (int)(20.0 * (double)d->used / (double)d->total + 0.5) : 0;

		mvprintw(y, 0, "%-12s [", d->pci);
		for (int k = 0; k < 20; k++) {
			addch((chtype)(k < used ? '#' : k < bar ? '=' : ' '));
		}
		printw("] used %s, reserved %s, in flight %s of %s, %zu process%s",
			ss_size_text(d->used, size[0]), ss_size_text(d->reserved, size[1]),
			ss_size_text(d->in_flight, size[2]), ss_size_text(d->total, size[3]),
			d->processes, d->processes == 1 ? "" : "es");
		y++;
	}
	return y;
}

static void draw(const struct ss_top_sample *s, size_t *top) {
	size_t count;
	struct row *rows = make_rows(s, &count);

	erase();
	mvprintw(0, 0, "somashim top: %zu process%s, by %s   q quit  s sort  up/down scroll", s->count,
		s->count == 1 ? "" : "es", orders[order].name);
	int y = draw_devices(s);
	attron(A_REVERSE);
	mvprintw(y, 0, "%8s %5s %-15s %-12s %-8s %9s %9s %9s %9s %9s %8s %8s", "PID", "RANK", "COMMAND",
		"DEVICE", "POOL", "USED", "RESERVED", "IN FLIGHT", "USED HI", "RES. HI", "ALLOC/S",
		"FREE/S");
	attroff(A_REVERSE);
	size_t room = LINES > y + 1 ? (size_t)(LINES - y - 1) : 0;
	if (*top + room > count) {
		*top = count > room ? count - room : 0;
	}
	for (size_t i = *top; i < count && i - *top < room; i++) {
		draw_row(++y, &rows[i]);
	}
	refresh();
	free(rows);
}

/* False: the user is done. */
static bool handle_key(int key, size_t *top) {
	switch (key) {
	case 'q': case 'Q': case 27: return false;
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

int ss_top_screen(const char *directory, const struct ss_top_filter *filter, unsigned delay_ms) {
	struct ss_top_sample now, before = { 0 };
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
		if (!taken) {
			break;
		}
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
