/* SPDX-License-Identifier: MIT */
/*
 * The kernels of the corpus for a real device, which runs them with one group of 64. They use no
 * library, so that a compiler is enough:
 *   clang -target amdgcn-amd-amdhsa -mcpu=gfx942 -nogpulib -cl-no-stdinc -x cl -cl-std=CL2.0 -O1 \
 *     corpus.cl -o corpus.hsaco
 */
struct three {
	long n;
	unsigned long p; /* an address */
	long m;
};

static void put(__global unsigned char *p, unsigned long n)
{
	for (unsigned long i = __builtin_amdgcn_workitem_id_x(); i < n; i += 64)
		p[i] = 0x11;
}

__kernel void fill(__global int *p, int n)
{
}

__kernel void copy(__global int *q, __global int *p, int n)
{
}

__kernel void in_struct(int n, struct three s)
{
}

__kernel void number(long n)
{
}

__kernel void write(__global unsigned char *p, unsigned long n)
{
	put(p, n);
}

__kernel void hidden(unsigned long p, unsigned long n)
{
	put((__global unsigned char *)~p, n);
}

__kernel void produce(__global unsigned char *restrict p)
{
	p[__builtin_amdgcn_workitem_id_x()] = 0x11;
}

__kernel void consume(__global const unsigned char *restrict p)
{
	if (p[__builtin_amdgcn_workitem_id_x()] == 0x12)
		__builtin_amdgcn_s_sleep(1);
}

__kernel void choose(__global const unsigned char *restrict p, __global const unsigned char *restrict q)
{
}

__kernel void bias(__global float *p, __global float *q, __global const float *restrict r, int use)
{
}

/* It does not use p. */
__kernel void ignore(__global const int *restrict p, __global int *q, int n)
{
	q[__builtin_amdgcn_workitem_id_x()] = n;
}
