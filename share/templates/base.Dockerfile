# What coding agents need around them: Node, Python, Go, git and the usual tools, and a user "agent".
ARG BASE=debian:12
ARG NODE=node:22-bookworm-slim
ARG GO=golang:1.24-bookworm
FROM ${NODE} AS node
FROM ${GO} AS go

FROM ${BASE} AS base
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        bash build-essential ca-certificates curl gh git jq less openssh-client patch procps python3 \
        python3-pip python3-venv ripgrep sudo unzip vim-tiny wget xz-utils && \
    rm -rf /var/lib/apt/lists/*
COPY --from=go /usr/local/go /usr/local/go
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && \
    ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx && \
    useradd --create-home --shell /bin/bash agent && \
    echo 'agent ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/agent && chmod 440 /etc/sudoers.d/agent
ENV PATH=/home/agent/.local/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /home/agent
USER agent
CMD ["bash"]
