/* SPDX-License-Identifier: MIT */
/* Kernels for real code objects: test_code.c knows the layouts of their arguments. */
struct pair {
	long m;
	long n;
};

/* It loads what p points to, but not q. */
kernel void some(__global const float *restrict p, __global const float *restrict q, __global float *r, int n)
{
	r[n] = p[n];
}

kernel void fill(__global float *p, int n, struct pair s, __global int *q)
{
	p[s.m] = n;
	q[0] = (int)s.n;
}
