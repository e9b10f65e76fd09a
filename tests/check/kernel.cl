/* SPDX-License-Identifier: MIT */
/* A kernel for real code objects: test_code.c knows the layout of its arguments. */
struct pair {
	long m;
	long n;
};

kernel void fill(__global float *p, int n, struct pair s, __global int *q)
{
	p[s.m] = n;
	q[0] = (int)s.n;
}
