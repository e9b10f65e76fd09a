/* SPDX-License-Identifier: MIT */
/* A kernel of the program itself uses a block after its free. A library that is linked has a kernel
 * of the same name and other arguments, which the program never launches: the library's code is not
 * asked, and need not be read. */
#include "corpus.h"
#include "own_code.h"

int own_code_library(void);
void **__hipRegisterFatBinary(const void *image);
void __hipRegisterFunction(void **code, const void *stub, char *device, const char *name,
			   unsigned threads, void *, void *, dim3 *, dim3 *, int *);

int main(void)
{
	static const int image, stub;
	hipStream_t s;
	int n = own_code_library();
	void *p;

	__hipRegisterFunction(__hipRegisterFatBinary(&image), &stub, (char *)"fill", "fill", 64,
			      NULL, NULL, NULL, NULL, NULL);
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	p = block(s);
	OK(hipFreeAsync(p, s));
	OK(hipLaunchKernel(&stub, (dim3){1, 1, 1}, (dim3){64, 1, 1}, (void *[]){&p, &n}, 0, s));
	OK(hipDeviceSynchronize());
	return 0;
}
