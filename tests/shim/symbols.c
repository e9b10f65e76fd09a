/* SPDX-License-Identifier: MIT */
/*
 * Copies to and from symbols are watched: a stream that is used for nothing else becomes
 * known, and a hipFree waits for it.
 */
#include "test.h"

void **__hipRegisterFatBinary(const void *data);
void __hipRegisterVar(void **modules, void *var, char *host, char *device, int ext, size_t size,
		      int constant, int global);

static int symbol[16];
static const struct {
	uint32_t magic, version;
	const void *binary;
	void *unused;
} fat = {
	0x48495046,
	1,
	"",
	NULL,
};

int main(void)
{
	int in[16] = {1, 2, 3}, out[16] = {0};
	char name[] = "symbol";
	uint64_t waits;
	void *p;

	CHECK(preloaded());
	__hipRegisterVar(__hipRegisterFatBinary(&fat), symbol, name, name, 0, sizeof(symbol), 0, 0);
	OK(hipMalloc(&p, 4096));
	for (int i = 0; i < 20; i++)
		OK(hipMemcpyToSymbolAsync(symbol, in, sizeof(in), 0, hipMemcpyHostToDevice,
					  hipStreamPerThread));
	waits = sim_count("hipStreamSynchronize");
	OK(hipFree(p));
	CHECK(sim_count("hipStreamSynchronize") > waits);
	OK(hipMemcpyFromSymbolAsync(out, symbol, sizeof(out), 0, hipMemcpyDeviceToHost,
				    hipStreamPerThread));
	OK(hipStreamSynchronize(hipStreamPerThread));
	CHECK(!memcmp(in, out, sizeof(in)));
	return 0;
}
