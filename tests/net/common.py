"""What the test world's servers share: binding, logging, saying that they are ready."""
import os
import socket


def bind(address, port, kind=socket.SOCK_STREAM):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND: addresses that only a local route has
    s.bind((address, port))
    if kind == socket.SOCK_STREAM:
        s.listen(4096)
    return s


def logger(path):
    """A line is one write to a file opened for appending: readers never see half of it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    return lambda line: os.write(fd, line.encode("unicode_escape") + b"\n")


def ready():
    with open(os.environ["WORLD_READY"], "w") as fifo:
        fifo.write("ready\n")
