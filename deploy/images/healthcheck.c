/* Asks a service on this machine whether it is well, for images without a shell: an interpreter takes 0.1 s of a core each time.
 *
 *     healthcheck [PATH [PORT]]
 *
 * PATH is /healthz unless given; PORT is that of HEADGATE_ADMIN_PORT, else 9080. Ends with 0 if the answer's status is 200
 * within two seconds, else with 1 after one line that says why. Linked statically, so it runs in any image, also by a
 * Kubernetes exec probe.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const char *path = "/healthz";
static const char *port = "9080";

static int fail(const char *reason)
{
    fprintf(stderr, "healthcheck: http://127.0.0.1:%s%s: %s\n", port, path, reason);
    return 1;
}

static int ask(int site, long number)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)number)};
    struct timeval bound = {.tv_sec = 2};
    char request[1024], answer[16];
    size_t got = 0;
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path);

    if (length < 0 || (size_t)length >= sizeof request)
        return fail("the path is too long");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(site, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    setsockopt(site, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
    if (connect(site, (struct sockaddr *)&address, sizeof address) || send(site, request, (size_t)length, MSG_NOSIGNAL) < 0)
        return fail(strerror(errno));
    /* "HTTP/1.1 200" is enough. It may come in pieces. */
    while (got < 12) {
        ssize_t more = recv(site, answer + got, 12 - got, 0);
        if (more < 0)
            return fail(errno == EAGAIN ? "no answer within 2 s" : strerror(errno));
        if (more == 0)
            return fail("the connection was closed without an answer");
        got += (size_t)more;
    }
    answer[got] = '\0';
    if (strncmp(answer, "HTTP/1.", 7))
        return fail("the answer is not HTTP");
    return strcmp(answer + 8, " 200") ? fail(answer) : 0;
}

int main(int count, char **arguments)
{
    const char *named = getenv("HEADGATE_ADMIN_PORT");
    char *end;
    long number;
    int site, code;

    if (named && *named)
        port = named;
    if (count > 1)
        path = arguments[1];
    if (count > 2)
        port = arguments[2];
    number = strtol(port, &end, 10);
    if (count > 3 || path[0] != '/' || *end || number < 1 || number > 65535) {
        fputs("usage: healthcheck [PATH [PORT]]\n", stderr);
        return 2;
    }
    site = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (site < 0)
        return fail(strerror(errno));
    code = ask(site, number);
    close(site);
    return code;
}
