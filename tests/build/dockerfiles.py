"""Dockerfiles in the style of well-known projects, written for these tests: each is built by us and by buildah.

A row is a name, the Dockerfile, the files of its context (a text, or ("link", target)), and further words for
both builders. They stand on a busybox root, localhost/base:1, so that nothing is fetched.
"""

SCRIPT = "#!/bin/sh\nset -e\nexec \"$@\"\n"

ROWS = [
    ("nginx", """
FROM localhost/base:1
LABEL maintainer="someone <someone@example.org>"
ENV NGINX_VERSION 1.25.3
ENV PKG_RELEASE=1~x
RUN set -x \\
    && addgroup -g 101 -S nginx \\
    && adduser -S -D -H -u 101 -h /var/cache/nginx -s /sbin/nologin -G nginx nginx \\
    && mkdir -p /docker-entrypoint.d /var/log/nginx /var/cache/nginx \\
    && ln -sf /dev/stdout /var/log/nginx/access.log
COPY docker-entrypoint.sh /
COPY 10-listen.sh 20-env.sh /docker-entrypoint.d/
ENTRYPOINT ["/docker-entrypoint.sh"]
EXPOSE 80
STOPSIGNAL SIGQUIT
CMD ["nginx", "-g", "daemon off;"]
""", {"docker-entrypoint.sh": SCRIPT, "10-listen.sh": "echo 10\n", "20-env.sh": "echo 20\n"}, []),
    ("redis", """
FROM localhost/base:1
RUN addgroup -S -g 1000 redis && adduser -S -G redis -u 999 redis
ENV REDIS_VERSION 7.2.1
ENV REDIS_DOWNLOAD_SHA=5c76d990a1b1c5f949bcd1eed90d0c8a4f70369bdbdcb40288c561ddf88967a4
RUN mkdir /data && chown redis:redis /data
VOLUME /data
WORKDIR /data
COPY docker-entrypoint.sh /usr/local/bin/
ENTRYPOINT ["docker-entrypoint.sh"]
EXPOSE 6379
CMD ["redis-server"]
""", {"docker-entrypoint.sh": SCRIPT}, []),
    ("postgres", """
FROM localhost/base:1
RUN set -eux; addgroup -S -g 70 postgres; adduser -S -D -H -u 70 -G postgres -h /var/lib/postgresql postgres; \\
	mkdir -p /var/lib/postgresql; chown -R postgres:postgres /var/lib/postgresql
ENV LANG en_US.utf8
RUN mkdir /docker-entrypoint-initdb.d
ENV PG_MAJOR 16
ENV PATH $PATH:/usr/lib/postgresql/$PG_MAJOR/bin
RUN mkdir -p /var/run/postgresql && chown -R postgres:postgres /var/run/postgresql && chmod 2777 /var/run/postgresql
ENV PGDATA /var/lib/postgresql/data
RUN mkdir -p "$PGDATA" && chown -R postgres:postgres "$PGDATA" && chmod 777 "$PGDATA"
VOLUME /var/lib/postgresql/data
COPY docker-entrypoint.sh /usr/local/bin/
RUN ln -s usr/local/bin/docker-entrypoint.sh / # compatibility
ENTRYPOINT ["docker-entrypoint.sh"]
STOPSIGNAL SIGINT
EXPOSE 5432
CMD ["postgres"]
""", {"docker-entrypoint.sh": SCRIPT}, []),
    ("node-app", """
FROM localhost/base:1
ENV NODE_ENV=production
WORKDIR /usr/src/app
COPY ["package.json", "package-lock.json*", "npm-shrinkwrap.json*", "./"]
RUN mkdir node_modules && cp package.json node_modules/ && mv node_modules ../
COPY . .
EXPOSE 3000
RUN chown -R app /usr/src/app
USER app
CMD ["node", "index.js"]
""", {"package.json": "{}\n", "package-lock.json": "{}\n", "index.js": "1\n", "lib/a.js": "2\n", "node_modules/x": "no\n",
      ".dockerignore": "node_modules\n.git\n*.log\n", "debug.log": "no\n", ".git/HEAD": "no\n"}, []),
    ("flask", """
# syntax=docker/dockerfile:1
FROM localhost/base:1 AS builder
WORKDIR /app
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY requirements.txt .
RUN mkdir -p /opt/venv/lib && cp requirements.txt /opt/venv/lib/
FROM localhost/base:1
WORKDIR /app
ENV PATH="/opt/venv/bin:$PATH"
COPY --from=builder /opt/venv /opt/venv
COPY src/ ./src/
COPY --chown=app:app app.py .
HEALTHCHECK --interval=30s --timeout=3s --retries=2 CMD wget -q http://localhost/ || exit 1
ENTRYPOINT python3 app.py
""", {"requirements.txt": "flask\n", "app.py": "x\n", "src/one/two.py": "y\n"}, []),
    ("go-scratch", """
ARG VERSION=dev
FROM localhost/base:1 AS build
ARG VERSION
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd cmd
RUN printf 'binary %s\\n' "$VERSION" >/bin/server && chmod +x /bin/server
FROM scratch
COPY --from=build /etc/passwd /etc/passwd
COPY --from=build /bin/server /server
USER 1234
EXPOSE 8080/tcp
ENTRYPOINT ["/server"]
""", {"go.mod": "m\n", "go.sum": "s\n", "cmd/main.go": "package main\n"}, ["--build-arg", "VERSION=2.1"]),
    ("prometheus", """
ARG ARCH="amd64"
FROM localhost/base:1
LABEL maintainer="The Authors <x@example.org>" \\
      org.opencontainers.image.source="https://example.org/repo"
ARG ARCH
COPY .build/linux-${ARCH}/prometheus /bin/prometheus
COPY documentation/examples/prometheus.yml /etc/prometheus/prometheus.yml
COPY consoles/ /usr/share/prometheus/consoles/
COPY LICENSE /LICENSE
WORKDIR /prometheus
RUN ln -s /usr/share/prometheus/consoles /etc/prometheus/ && \\
    chown -R nobody:nogroup /etc/prometheus /prometheus
USER nobody
EXPOSE 9090
VOLUME [ "/prometheus" ]
ENTRYPOINT [ "/bin/prometheus" ]
CMD [ "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus" ]
""", {".build/linux-amd64/prometheus": SCRIPT, "documentation/examples/prometheus.yml": "g:\n", "consoles/a.html": "a\n",
      "LICENSE": "l\n"}, []),
    ("traefik", """
FROM scratch
COPY script/ca-certificates.crt /etc/ssl/certs/
COPY dist/traefik /
EXPOSE 80
VOLUME ["/tmp"]
ENTRYPOINT ["/traefik"]
""", {"script/ca-certificates.crt": "c\n", "dist/traefik": SCRIPT}, []),
    ("memcached", """
FROM localhost/base:1
RUN addgroup -S -g 11211 memcache; adduser -S -G memcache -u 11211 memcache
ENV MEMCACHED_VERSION 1.6.21
COPY docker-entrypoint.sh /usr/local/bin/
RUN ln -s usr/local/bin/docker-entrypoint.sh /entrypoint.sh
ENTRYPOINT ["docker-entrypoint.sh"]
USER memcache
EXPOSE 11211
CMD ["memcached"]
""", {"docker-entrypoint.sh": SCRIPT}, []),
    ("mysql", """
FROM localhost/base:1
RUN addgroup -S -g 999 mysql && adduser -S -u 999 -G mysql -h /var/lib/mysql -H mysql
RUN mkdir -p /docker-entrypoint-initdb.d /var/lib/mysql /var/run/mysqld; \\
	chown -R mysql:mysql /var/lib/mysql /var/run/mysqld; chmod 1777 /var/lib/mysql /var/run/mysqld
VOLUME /var/lib/mysql
COPY config/ /etc/mysql/
COPY docker-entrypoint.sh /usr/local/bin/
RUN ln -s /usr/local/bin/docker-entrypoint.sh /entrypoint.sh
ENTRYPOINT ["docker-entrypoint.sh"]
EXPOSE 3306 33060
CMD ["mysqld"]
""", {"config/my.cnf": "[mysqld]\n", "config/conf.d/docker.cnf": "x\n", "docker-entrypoint.sh": SCRIPT}, []),
    ("rails", """
FROM localhost/base:1
RUN mkdir -p /usr/local/etc && { echo 'install: --no-document'; echo 'update: --no-document'; } >> /usr/local/etc/gemrc
WORKDIR /myapp
COPY Gemfile /myapp/Gemfile
COPY Gemfile.lock /myapp/Gemfile.lock
RUN cp Gemfile.lock installed
COPY . /myapp
COPY entrypoint.sh /usr/bin/
RUN chmod +x /usr/bin/entrypoint.sh
ENTRYPOINT ["entrypoint.sh"]
EXPOSE 3000
CMD ["rails", "server", "-b", "0.0.0.0"]
""", {"Gemfile": "g\n", "Gemfile.lock": "l\n", "entrypoint.sh": "e\n", "app/x.rb": "x\n"}, []),
    ("php-apache", """
FROM localhost/base:1
ENV APACHE_CONFDIR /etc/apache2
ENV APACHE_ENVVARS $APACHE_CONFDIR/envvars
RUN set -eux; mkdir -p "$APACHE_CONFDIR" /var/www/html; echo : >"$APACHE_ENVVARS"; chmod 1777 /var/www/html
ENV PHP_CFLAGS="-fstack-protector-strong -fpic" PHP_CPPFLAGS="$PHP_CFLAGS"
COPY docker-php-* /usr/local/bin/
WORKDIR /var/www/html
STOPSIGNAL SIGWINCH
EXPOSE 80
CMD ["apache2-foreground"]
""", {"docker-php-entrypoint": SCRIPT, "docker-php-ext-install": SCRIPT, "other": "no\n"}, []),
    ("wordpress", """
FROM localhost/base:1
RUN mkdir -p /usr/src/wordpress/wp-content && echo '<?php' >/usr/src/wordpress/index.php && \\
	chown -R app:app /usr/src/wordpress && mkdir -p -m 1777 /usr/src/wordpress/wp-content/cache
VOLUME /var/www/html
COPY --chown=app:app wp-config-docker.php /usr/src/wordpress/
COPY docker-entrypoint.sh /usr/local/bin/
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["apache2-foreground"]
""", {"wp-config-docker.php": "<?php\n", "docker-entrypoint.sh": SCRIPT}, []),
    ("java", """
FROM localhost/base:1 AS deps
WORKDIR /build
COPY --chmod=0755 mvnw mvnw
COPY .mvn/ .mvn/
RUN ./mvnw true
FROM deps AS package
COPY ./src src/
RUN mkdir target && cp -r src target/app
FROM localhost/base:1 AS final
ARG UID=10001
RUN adduser -D -g "" -h "/nonexistent" -s "/sbin/nologin" -H -u "${UID}" appuser
USER appuser
COPY --from=package build/target/app/ ./app/
EXPOSE 8080
ENTRYPOINT [ "java", "-jar", "app.jar" ]
""", {"mvnw": SCRIPT, ".mvn/wrapper.properties": "p\n", "src/main/A.java": "class A {}\n"}, []),
    ("haproxy", """
FROM localhost/base:1
RUN set -eux; addgroup -g 99 -S haproxy; adduser -S -D -H -G haproxy -u 99 -h /var/lib/haproxy haproxy; \\
	mkdir -p /var/lib/haproxy; chown haproxy:haproxy /var/lib/haproxy
ENV HAPROXY_VERSION=2.8.3
STOPSIGNAL SIGUSR1
COPY docker-entrypoint.sh /usr/local/bin/
ENTRYPOINT ["docker-entrypoint.sh"]
USER haproxy
WORKDIR /var/lib/haproxy
CMD ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
""", {"docker-entrypoint.sh": SCRIPT}, []),
    ("registry", """
FROM localhost/base:1
COPY ./registry /bin/registry
COPY ./config-example.yml /etc/docker/registry/config.yml
VOLUME ["/var/lib/registry"]
EXPOSE 5000
COPY entrypoint.sh /entrypoint.sh
ENTRYPOINT ["/entrypoint.sh"]
CMD ["/etc/docker/registry/config.yml"]
""", {"registry": SCRIPT, "config-example.yml": "v: 1\n", "entrypoint.sh": SCRIPT}, []),
    ("gitea", """
FROM localhost/base:1
EXPOSE 22 3000
RUN addgroup -S -g 1000 git && adduser -S -H -D -h /data/git -s /bin/sh -u 1001 -G git git && \\
  echo "git:*" >>/etc/group.extra
ENV USER git
ENV GITEA_CUSTOM /data/gitea
VOLUME ["/data"]
ENTRYPOINT ["/usr/bin/entrypoint"]
CMD ["/bin/s6-svscan", "/etc/s6"]
COPY docker/root /
RUN chmod 755 /usr/bin/entrypoint /etc/s6/gitea/run
""", {"docker/root/usr/bin/entrypoint": SCRIPT, "docker/root/etc/s6/gitea/run": SCRIPT,
      "docker/root/etc/s6/.keep": ""}, []),
    ("jenkins", """
FROM localhost/base:1
ARG user=jenkins
ARG group=jenkins
ARG uid=1003
ARG http_port=8080
ARG JENKINS_HOME=/var/jenkins_home
ENV JENKINS_HOME $JENKINS_HOME
RUN mkdir -p $JENKINS_HOME && addgroup -g ${uid} ${group} && \\
  adduser -D -h "$JENKINS_HOME" -u ${uid} -G ${group} -s /bin/sh ${user} && chown ${uid}:${uid} $JENKINS_HOME
VOLUME $JENKINS_HOME
ENV REF ${REF:-/usr/share/jenkins/ref}
RUN mkdir -p ${REF}/init.groovy.d && chown -R ${user} "$REF"
EXPOSE ${http_port}
USER ${user}
COPY jenkins.sh /usr/local/bin/jenkins.sh
ENTRYPOINT ["/bin/sh", "--", "/usr/local/bin/jenkins.sh"]
""", {"jenkins.sh": SCRIPT}, ["--build-arg", "http_port=8090"]),
    ("hugo", """
FROM localhost/base:1 AS base
FROM base AS build
WORKDIR /site
COPY content content
COPY themes/ themes
RUN mkdir public && cat content/*.md >public/index.html && ln -s index.html public/home.html
FROM base
COPY --from=build /site/public /usr/share/www
COPY --from=0 /etc/group /tmp/group
""", {"content/a.md": "a\n", "content/b.md": "b\n", "themes/t/x.css": "x\n"}, []),
    ("removals", """
FROM localhost/base:1
RUN rm -rf /opt /home/app && mkdir /home/app && echo new >/home/app/f
RUN rm /etc/group && mkdir /etc/group.d && echo x >/etc/group.d/y
RUN mv /etc/group.d /etc/renamed && touch -d '2001-02-03 04:05:06' /etc/renamed/y
RUN ln /etc/renamed/y /hardlink && ln -s nowhere /dangling && mkfifo /fifo
""", {}, []),
    ("modes", """
FROM localhost/base:1
RUN mkdir -m 750 /a && mkdir -m 1777 /b && mkdir -m 2775 /c && touch /s && chmod 4755 /s && chown 5:6 /b
RUN chmod 711 /root
COPY --chown=11:12 --chmod=640 f /x/y/f
COPY --chown=app d /d
ADD f /plain
""", {"f": "f\n", "d/e/g": "g\n"}, []),
    ("archives", """
FROM localhost/base:1
ADD root.tar.gz /unpacked/
ADD root.tar.gz /more
COPY root.tar.gz /kept.tar.gz
""", {"root.tar.gz": ("tar", {"one": "1\n", "dir/two": "2\n"})}, []),
    ("patterns", """
FROM localhost/base:1
COPY *.txt dir?/ /out/
COPY [a-b]*.conf nothing*.x /conf/
COPY link /followed
COPY dir1 dir2/ /both/
COPY . /all
""", {"a.txt": "a\n", "b.txt": "b\n", "c.md": "c\n", "dir1/x": "1\n", "dir2/y": "2\n", "a1.conf": "\n", "c1.conf": "\n",
      "link": ("link", "a.txt"), "dir1/l": ("link", "../b.txt")}, []),
    ("shell", """
FROM localhost/base:1
SHELL ["/bin/sh", "-eux", "-c"]
RUN false || echo here >/yes
RUN echo "${0}" >/zero
SHELL ["/bin/busybox", "ash", "-c"]
RUN echo $((1 << 4)) >/sixteen
CMD echo hello
""", {}, []),
    ("env", """
FROM localhost/base:1
ENV A=1 B="two words" C=esc\\ aped D='single $A'
ENV E=$A F=${B} G="${NONE:-default}" H=${A:+set} I=\\$A
ENV A=changed J=$A
ENV OLD all of this is the value
LABEL v=$J "with space"="x y" multi="a\\
b"
WORKDIR /w/$E
WORKDIR sub
RUN env | grep '^[A-J]=' | sort >env; pwd >pwd
USER app:nogroup
RUN { id -u; id -g; id -un; } >/tmp/id
""", {}, []),
    ("onbuild-parent", """
FROM localhost/base:1
RUN mkdir -p /usr/src/app
WORKDIR /usr/src/app
ONBUILD COPY package.json /usr/src/app/
ONBUILD RUN cat package.json >installed
ONBUILD ENV DONE=1
CMD [ "npm", "start" ]
""", {"package.json": "p\n"}, []),
    ("onbuild-child", """
FROM localhost/onbuild-parent:1
RUN cat installed >/seen; echo $DONE >>/seen
""", {"package.json": "child\n"}, []),
    ("entrypoints", """
FROM localhost/onbuild-parent:1
ENTRYPOINT exec top -b
EXPOSE 1000-1002/udp 53/tcp
HEALTHCHECK NONE
""", {"package.json": "x\n"}, []),
    ("mounts", """
FROM localhost/base:1 AS src
RUN echo from stage >/in
FROM localhost/base:1
RUN --mount=type=bind,from=src,source=/in,target=/mnt-in cat /mnt-in >/out
RUN --mount=type=tmpfs,target=/scratch echo x >/scratch/x; ls /scratch >>/out
RUN --mount=type=cache,target=/var/cache/thing echo c >/var/cache/thing/c
""", {}, []),
    ("many-stages", """
FROM localhost/base:1 AS a
RUN echo a >/a
FROM a AS b
RUN echo b >/b
FROM localhost/base:1 AS c
COPY --from=a /a /from-a
COPY --from=b /a /b /from-b/
FROM c
COPY --from=c /from-b /again
RUN cat /from-a /again/b >/all
""", {}, []),
    ("ignored", """
FROM localhost/base:1
COPY . /c
COPY keep/this /one
""", {".dockerignore": "# comment\n**/*.tmp\nkeep/*\n!keep/this\n/top\nsub/dir\n", "a.tmp": "\n", "b": "b\n", "keep/this": "t\n",
      "keep/that": "no\n", "top": "no\n", "sub/top": "yes\n", "sub/dir/x": "no\n", "sub/y.tmp": "no\n"}, []),
]
