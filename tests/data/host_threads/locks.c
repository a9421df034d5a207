/* Two threads and one lock: the other thread holds it for 4 ms at a time, the main thread wants it for half a ms.
   `locks shared`, or `locks apart` with a lock for each of them. */
#include <pthread.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static double end;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void work_for(double seconds) {
    for (double until = now() + seconds; now() < until;) {
    }
}

__attribute__((noinline)) static void update_table(pthread_mutex_t *lock, double seconds) {
    pthread_mutex_lock(lock);
    work_for(seconds);
    pthread_mutex_unlock(lock);
}

static void *other(void *lock) {
    while (now() < end) {
        update_table(lock, 4e-3);
        work_for(1e-4);
    }
    return 0;
}

int main(int argc, char **argv) {
    int apart = argc > 1 && !strcmp(argv[1], "apart");
    end = now() + 0.3;
    pthread_t thread;
    pthread_create(&thread, 0, other, &locks[apart]);
    while (now() < end) {
        update_table(&locks[0], 5e-4);
        work_for(5e-4);
    }
    return pthread_join(thread, 0);
}
