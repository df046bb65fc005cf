/* Loaded before the C library of a server (LD_PRELOAD, ld.so(8)): each answer costs a known CPU time more, before it is
 * sent. The time is that of DNSLAB_BUSY_NS, and the loop is counted: a clock would cost as much as it measures.
 *
 * cc -O2 -shared -fPIC -o busy.so busy.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Steps of a block of the calibration, some 0.3 ms; blocks before those that count, since a CPU that slept takes a while
 * to reach its clock rate; and those whose median counts. */
enum { BLOCK = 200000, WARM_UP = 16, BLOCKS = 31 };

/* Octets of a DNS message with a question, at least. Threads wake each other by shorter writes. */
enum { LEAST = 17 };

static uint64_t steps;

static void work(uint64_t count)
{
    uint64_t state = count;
    for (uint64_t step = 0; step < count; step++)
        __asm__ volatile("imul $3, %0, %0" : "+r"(state));
}

static int64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

__attribute__((constructor)) static void calibrate(void)
{
    const char *text = getenv("DNSLAB_BUSY_NS");
    int64_t blocks[BLOCKS];
    for (int block = -WARM_UP; block < BLOCKS; block++) {
        int64_t start = cpu_ns();
        work(BLOCK);
        if (block >= 0)
            blocks[block] = cpu_ns() - start;
    }
    qsort(blocks, BLOCKS, sizeof blocks[0], ascending);
    steps = text ? (uint64_t)(strtod(text, NULL) * BLOCK / (double)blocks[BLOCKS / 2]) : 0;
}

/* The next function of this name, which the server would have called. */
#define NEXT(name)                                   \
    static __typeof__(&name) next;                   \
    if (!next)                                       \
        next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    NEXT(sendmsg);
    work(steps);
    return next(socket, message, flags);
}

int sendmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags)
{
    NEXT(sendmmsg);
    work(steps * count);
    return next(socket, messages, count, flags);
}

/* libuv, on which BIND stands, sends datagrams so, since old C libraries lack the functions. */
long syscall(long number, ...)
{
    long words[6];
    va_list given;
    NEXT(syscall);
    va_start(given, number);
    for (int place = 0; place < 6; place++)
        words[place] = va_arg(given, long);
    va_end(given);
    if (number == SYS_sendmmsg)
        work(steps * (uint64_t)words[2]);
    else if (number == SYS_sendmsg || number == SYS_sendto)
        work(steps);
    return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

ssize_t sendto(int socket, const void *octets, size_t length, int flags, const struct sockaddr *to, socklen_t size)
{
    NEXT(sendto);
    work(steps);
    return next(socket, octets, length, flags, to, size);
}

ssize_t send(int socket, const void *octets, size_t length, int flags)
{
    NEXT(send);
    work(steps);
    return next(socket, octets, length, flags);
}

ssize_t write(int file, const void *octets, size_t length)
{
    NEXT(write);
    if (length >= LEAST)
        work(steps);
    return next(file, octets, length);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    NEXT(writev);
    work(steps);
    return next(file, parts, count);
}
