// Names below slow.test take forty seconds to be not found.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    if (node && strstr(node, "slow.test")) {
        sleep(40);
        return EAI_AGAIN;
    }
    lookup *real = (lookup *)dlsym(RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, found);
}
