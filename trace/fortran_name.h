/* SPDX-License-Identifier: MIT */
/* Names of Fortran's procedures, as gfortran and flang write them into symbol tables. */
#ifndef SS_TRACE_FORTRAN_NAME_H
#define SS_TRACE_FORTRAN_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* "module::procedure" for the symbol of a procedure of a module, "host::procedure" for one within
 * another. False: `symbol` is no such name, or the result does not fit. */
bool ss_fortran_name(const char *symbol, char *out, size_t size);

#endif
